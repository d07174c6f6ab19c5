package jmsbridge.serdes;

import java.nio.ByteBuffer;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection$;
import org.apache.spark.sql.types.StructType;

/** Reader of values with a schema: bare ones, or those in Confluent's wire format, each by its own writer's schema. */
public final class SchemaReader implements ValueReader {
  private static final long serialVersionUID = 1L;
  /** First byte of a value in Confluent's wire format, before the four bytes of its schema's id. */
  static final byte MAGIC = 0;
  private static final int HEAD_BYTES = 1 + Integer.BYTES;
  private static final int MOST_DECODERS = 1_000;

  final Role role;
  final Format format;
  final SchemaRegistry registry;
  final SchemaText schema;
  private final int version;
  private final StructType type;
  private transient Map<Integer, Format.Decoder> decoders;
  private transient UnsafeProjection rows;

  /**
   * Creates a reader into the fields of a schema.
   *
   * @param registry null: values are bare
   * @param version version of the subject that the schema is and a later one may take the place of; 0: the topology names
   *     the schema
   */
  SchemaReader(Role role, Format format, SchemaRegistry registry, SchemaText schema, int version) {
    this.role = role;
    this.format = format;
    this.registry = registry;
    this.schema = schema;
    this.version = version;
    type = format.fields(schema);
    // A schema that cannot be used is found when the topology is planned.
    format.decoder(schema, schema);
  }

  @Override
  public StructType type() {
    return type;
  }

  @Override
  public void expect(Stream<byte[]> values) {
    if (registry != null) {
      registry.expect(format.type(), values
          .filter(each -> each != null && each.length >= HEAD_BYTES && each[0] == MAGIC)
          .map(each -> ByteBuffer.wrap(each).getInt(1)).collect(Collectors.toSet()));
    }
  }

  @Override
  public InternalRow read(byte[] value) {
    try {
      return bounded(value);
    } catch (StackOverflowError deep) {
      throw new UnfitValueException("the value, or the schema that it names, is nested too deeply");
    }
  }

  private InternalRow bounded(byte[] value) {
    if (rows == null) {
      rows = UnsafeProjection$.MODULE$.create(type);
      decoders = new Recent<>(MOST_DECODERS);
    }
    ByteBuffer bytes = ByteBuffer.wrap(value);
    String by = registry == null ? "" : " of the schema with the id %d".formatted(id(bytes));
    Format.Decoder decoder = registry == null ? decoder(0) : decoder(bytes.getInt(1));
    try {
      if (registry != null) {
        decoder.readPrefix(bytes);
      }
      return rows.apply(decoder.read(bytes));
    } catch (UnfitValueException failure) {
      throw failure;
    } catch (Exception failure) {
      throw UnfitValueException.of("the bytes are not a valid %s value%s".formatted(format.type(), by), failure);
    }
  }

  /** Version of the subject that gives the fields, which was chosen as the latest; 0: the topology names the schema. */
  public int version() {
    return version;
  }

  /** Whether what is read are records; if not, it is in one field, {@code value}. */
  public boolean isRecord() {
    return format.isRecord(schema);
  }

  private static int id(ByteBuffer bytes) {
    if (bytes.remaining() < HEAD_BYTES) {
      throw new UnfitValueException(
          "%d bytes are fewer than Confluent's wire format has before a value".formatted(bytes.remaining()));
    }
    byte first = bytes.get();
    if (first != MAGIC) {
      throw new UnfitValueException(
          "the first byte is %d and not %d: the value is not in Confluent's wire format".formatted(first, MAGIC));
    }
    return bytes.getInt();
  }

  private Format.Decoder decoder(int id) {
    Format.Decoder found = decoders.get(id);
    if (found == null) {
      found = made(id);
      decoders.put(id, found);
    }
    return found;
  }

  private Format.Decoder made(int id) {
    SchemaText writer = registry == null ? schema : registry.schema(format.type(), id);
    try {
      return format.decoder(writer, schema);
    } catch (IllegalArgumentException failure) {
      throw UnfitValueException.of("the schema with the id %d".formatted(id), failure);
    }
  }
}
