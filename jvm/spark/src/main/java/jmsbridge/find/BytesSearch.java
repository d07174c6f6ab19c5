package jmsbridge.find;

import java.nio.ByteBuffer;
import java.util.Arrays;

/** Search for bytes inside of others, by the algorithm of Horspool. */
final class BytesSearch {
  private final byte[] wanted;
  /** Bytes to go on by, for each value of the byte below the last one of those that are wanted. */
  private final int[] steps = new int[256];

  BytesSearch(byte[] wanted) {
    this.wanted = wanted.clone();
    Arrays.fill(steps, wanted.length);
    for (int index = 0; index < wanted.length - 1; index++) {
      steps[wanted[index] & 0xff] = wanted.length - 1 - index;
    }
  }

  /** Whether a buffer of an array has the bytes in it; false for null. */
  boolean isIn(ByteBuffer buffer) {
    if (buffer == null) {
      return false;
    }
    byte[] bytes = buffer.array();
    int last = wanted.length - 1;
    int end = buffer.arrayOffset() + buffer.limit();
    int start = buffer.arrayOffset() + buffer.position();
    while (start + last < end) {
      if (last < 0 || Arrays.equals(bytes, start, start + last + 1, wanted, 0, last + 1)) {
        return true;
      }
      start += steps[bytes[start + last] & 0xff];
    }
    return false;
  }
}
