package jmsbridge.streams;

import java.nio.ByteBuffer;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection$;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;

/** Rows as bytes of stores and of internal topics. */
final class Rows {
  private Rows() {}

  static byte[] bytes(InternalRow row) {
    return ((UnsafeRow) row).getBytes();
  }

  static UnsafeRow row(byte[] bytes, int fields) {
    return row(bytes, 0, fields);
  }

  /** The row in the bytes from a position on, which is a multiple of eight. */
  static UnsafeRow row(byte[] bytes, int from, int fields) {
    UnsafeRow row = new UnsafeRow(fields);
    row.pointTo(bytes, Platform.BYTE_ARRAY_OFFSET + from, bytes.length - from);
    return row;
  }

  /** A row behind a time in milliseconds. */
  static byte[] timed(long time, InternalRow row) {
    byte[] bytes = bytes(row);
    return ByteBuffer.allocate(Long.BYTES + bytes.length).putLong(time).put(bytes).array();
  }

  static long time(byte[] timed) {
    return ByteBuffer.wrap(timed).getLong();
  }

  static UnsafeRow timedRow(byte[] timed, int fields) {
    return row(timed, Long.BYTES, fields);
  }

  /** Projection of a joined row of these fields to a row of its own. */
  static UnsafeProjection copier(StructType type) {
    return UnsafeProjection$.MODULE$.create(type);
  }

  static boolean equal(InternalRow one, InternalRow other) {
    return one == other || one != null && other != null && Arrays.equals(bytes(one), bytes(other));
  }
}
