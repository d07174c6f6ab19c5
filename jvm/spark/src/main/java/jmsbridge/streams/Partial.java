package jmsbridge.streams;

import java.nio.ByteBuffer;
import jmsbridge.serdes.UnfitValueException;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;

/** The buffer of an aggregate of several records, in the place of a record with these in an internal topic. */
final class Partial extends GenericInternalRow {
  private static final long serialVersionUID = 1L;
  private static final int HEAD_BYTES = Integer.BYTES + Long.BYTES;

  /** Number of the records. */
  final long records;
  final UnsafeRow buffer;

  private Partial(long records, UnsafeRow buffer) {
    super(0);
    this.records = records;
    this.buffer = buffer;
  }

  /** The bytes of a buffer of so many records, by aggregates with a number. */
  static byte[] bytes(int aggregates, long records, UnsafeRow buffer) {
    byte[] row = Rows.bytes(buffer);
    return ByteBuffer.allocate(HEAD_BYTES + row.length).putInt(aggregates).putLong(records).put(row).array();
  }

  /** Whether bytes are those of a partial aggregate: rows have whole words, and these half of one more. */
  static boolean is(byte[] value) {
    return value.length % Long.BYTES == HEAD_BYTES % Long.BYTES;
  }

  /** Reads bytes; UnfitValueException if they are not those of a buffer by aggregates with this number. */
  static Partial read(byte[] value, int aggregates, RowCheck buffers) {
    if (value.length < HEAD_BYTES || ByteBuffer.wrap(value).getInt() != aggregates) {
      throw new UnfitValueException("the bytes are not of the present aggregates, which were changed");
    }
    return new Partial(ByteBuffer.wrap(value).getLong(Integer.BYTES), buffers.row(value, HEAD_BYTES));
  }
}
