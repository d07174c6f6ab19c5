package jmsbridge.streams;

import java.io.Serializable;
import java.nio.ByteBuffer;
import java.util.Locale;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Kind of the keys of records: the type that expressions see, and the bytes by which the program knows a key.
 *
 * <p>Equal keys have equal bytes. Those of the three kinds with a name are the bytes that such keys have in Kafka.
 */
abstract class KeyKind implements Serializable {
  private static final long serialVersionUID = 1L;

  static final KeyKind TEXT = new Text();
  static final KeyKind BYTES = new Bytes();
  /** Eight bytes, most significant first, as Kafka's LongSerializer writes them. */
  static final KeyKind LONG = new Long64();

  private final String name;
  private final DataType type;

  private KeyKind(String name, DataType type) {
    this.name = name;
    this.type = type;
  }

  /** The kind of that name: {@code TEXT}, {@code BYTES} or {@code LONG}. */
  static KeyKind named(String name) {
    return switch (name) {
      case "TEXT" -> TEXT;
      case "BYTES" -> BYTES;
      case "LONG" -> LONG;
      default -> throw new IllegalArgumentException("there is no kind of key '%s'".formatted(name));
    };
  }

  /** The kind of keys that are computed: a struct as it is, bytes as they are, and everything else as text. */
  static KeyKind ofComputed(DataType type) {
    return type instanceof StructType ? new Typed(type) : type instanceof BinaryType ? BYTES : TEXT;
  }

  /** The kind of keys that are read by a schema. */
  static KeyKind ofRead(DataType type) {
    if (type.equals(DataTypes.StringType)) {
      return TEXT;
    }
    if (type.equals(DataTypes.BinaryType)) {
      return BYTES;
    }
    return type.equals(DataTypes.IntegerType) || type.equals(DataTypes.LongType) ? LONG : new Typed(type);
  }

  final DataType type() {
    return type;
  }

  final String name() {
    return name;
  }

  /** Whether keys are known by the bytes of a row, which are not for others to read. */
  final boolean isTyped() {
    return this instanceof Typed;
  }

  /** Checks that bytes which others may have written are a key; UnfitValueException for other bytes. */
  void check(byte[] key) {
    // Any bytes are, of most kinds.
  }

  /** The key as Spark's value of the type. */
  abstract Object read(byte[] key);

  /** The bytes of the key in the only column of a row; null: none. */
  final byte[] write(InternalRow row) {
    return row.isNullAt(0) ? null : bytes(row);
  }

  /** The bytes of the key in the only column of a row, which is not null. */
  abstract byte[] bytes(InternalRow row);

  @Override
  public boolean equals(Object other) {
    return other instanceof KeyKind kind && kind.name.equals(name);
  }

  @Override
  public int hashCode() {
    return name.hashCode();
  }

  @Override
  public String toString() {
    return isTyped() ? name : name.toLowerCase(Locale.ROOT);
  }

  private static final class Text extends KeyKind {
    private static final long serialVersionUID = 1L;

    Text() {
      super("TEXT", DataTypes.StringType);
    }

    @Override
    Object read(byte[] key) {
      return UTF8String.fromBytes(key);
    }

    @Override
    byte[] bytes(InternalRow row) {
      return row.getUTF8String(0).getBytes();
    }
  }

  private static final class Bytes extends KeyKind {
    private static final long serialVersionUID = 1L;

    Bytes() {
      super("BYTES", DataTypes.BinaryType);
    }

    @Override
    Object read(byte[] key) {
      return key;
    }

    @Override
    byte[] bytes(InternalRow row) {
      return row.getBinary(0);
    }
  }

  private static final class Long64 extends KeyKind {
    private static final long serialVersionUID = 1L;

    Long64() {
      super("LONG", DataTypes.LongType);
    }

    @Override
    Object read(byte[] key) {
      return key.length == Long.BYTES ? ByteBuffer.wrap(key).getLong() : null;
    }

    @Override
    byte[] bytes(InternalRow row) {
      return ByteBuffer.allocate(Long.BYTES).putLong(row.getLong(0)).array();
    }
  }

  /** Keys of any other type, known by the bytes of Spark's row of them. */
  private static final class Typed extends KeyKind {
    private static final long serialVersionUID = 1L;
    private final RowCheck check;

    Typed(DataType type) {
      super(type.asNullable().catalogString(), type.asNullable());
      check = new RowCheck(new StructType().add("key", type.asNullable()));
    }

    @Override
    void check(byte[] key) {
      check.row(key, 0);
    }

    @Override
    Object read(byte[] key) {
      return check.row(key, 0).get(0, type());
    }

    @Override
    byte[] bytes(InternalRow row) {
      return Rows.bytes(((UnsafeRow) row).copy());
    }
  }
}
