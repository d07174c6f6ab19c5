package jmsbridge.streams;

import java.nio.ByteBuffer;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection$;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;

/** Rows as bytes of stores and of internal topics. */
final class Rows {
  private Rows() {}

  static byte[] bytes(InternalRow row) {
    return ((UnsafeRow) row).getBytes();
  }

  /** A row behind a time in milliseconds. */
  static byte[] timed(long time, InternalRow row) {
    return timed(time, bytes(row));
  }

  /** The bytes of a row behind a time in milliseconds. */
  static byte[] timed(long time, byte[] row) {
    return ByteBuffer.allocate(Long.BYTES + row.length).putLong(time).put(row).array();
  }

  static long time(byte[] timed) {
    if (timed.length < Long.BYTES) {
      throw new DamagedStateException("%d bytes are not a time and row".formatted(timed.length));
    }
    return ByteBuffer.wrap(timed).getLong();
  }

  /** The row behind a time, in an entry of the state. */
  static UnsafeRow timedRow(byte[] timed, RowCheck check) {
    return check.kept(timed, Long.BYTES);
  }

  /** Projection of a joined row of these fields to a row of its own. */
  static UnsafeProjection copier(StructType type) {
    return UnsafeProjection$.MODULE$.create(type);
  }

  static boolean equal(InternalRow one, InternalRow other) {
    return one == other || one != null && other != null && Arrays.equals(bytes(one), bytes(other));
  }
}
