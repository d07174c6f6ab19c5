package jmsbridge.streams;

import java.nio.ByteBuffer;
import java.util.Arrays;
import jmsbridge.serdes.UnfitValueException;

/** Two byte arrays as one, of which the second is a row at a multiple of eight, where Spark can read it in place. */
final class Pair {
  private Pair() {}

  static byte[] of(byte[] first, byte[] second) {
    int begin = begin(first.length);
    byte[] pair = new byte[begin + second.length];
    ByteBuffer.wrap(pair).putInt(first.length).put(first).position(begin).put(second);
    return pair;
  }

  static byte[] first(byte[] pair) {
    return Arrays.copyOfRange(pair, Integer.BYTES, Integer.BYTES + ByteBuffer.wrap(pair).getInt());
  }

  static byte[] second(byte[] pair) {
    return Arrays.copyOfRange(pair, begin(ByteBuffer.wrap(pair).getInt()), pair.length);
  }

  /** Where the second begins; UnfitValueException if the bytes are not a pair. */
  static int beginOfSecond(byte[] pair) {
    int length = pair.length < Integer.BYTES ? -1 : ByteBuffer.wrap(pair).getInt();
    if (length < 0 || length > pair.length - Integer.BYTES || begin(length) > pair.length) {
      throw new UnfitValueException("%d bytes are not a pair of this topology".formatted(pair.length));
    }
    return begin(length);
  }

  private static int begin(int length) {
    return (Integer.BYTES + length + 7) / 8 * 8;
  }
}
