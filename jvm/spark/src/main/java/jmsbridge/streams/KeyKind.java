package jmsbridge.streams;

import java.nio.ByteBuffer;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/** Form of a key's bytes in Kafka. */
public enum KeyKind {
  TEXT(DataTypes.StringType) {
    @Override
    Object read(byte[] key) {
      return UTF8String.fromBytes(key);
    }

    @Override
    byte[] write(InternalRow row) {
      return row.getUTF8String(0).getBytes();
    }
  },
  BYTES(DataTypes.BinaryType) {
    @Override
    Object read(byte[] key) {
      return key;
    }

    @Override
    byte[] write(InternalRow row) {
      return row.getBinary(0);
    }
  },
  /** Eight bytes, most significant first, as Kafka's LongSerializer writes them. */
  LONG(DataTypes.LongType) {
    @Override
    Object read(byte[] key) {
      return key.length == Long.BYTES ? ByteBuffer.wrap(key).getLong() : null;
    }

    @Override
    byte[] write(InternalRow row) {
      return ByteBuffer.allocate(Long.BYTES).putLong(row.getLong(0)).array();
    }
  };

  private final DataType type;

  KeyKind(DataType type) {
    this.type = type;
  }

  DataType type() {
    return type;
  }

  /** The key as Spark's value of the type. */
  abstract Object read(byte[] key);

  /** The bytes of the key in the first column of a row, which is not null. */
  abstract byte[] write(InternalRow row);
}
