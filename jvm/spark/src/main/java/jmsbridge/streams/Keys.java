package jmsbridge.streams;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.util.Arrays;

/** Keys of a store: parts of fixed or stated length, so that keys sort by their parts and no part runs into the next. */
final class Keys {
  private final ByteArrayOutputStream out = new ByteArrayOutputStream(48);

  private Keys() {}

  /** Begins the key of an entry of one kind of a node. */
  static Keys of(int node, char kind) {
    Keys keys = new Keys();
    keys.out.writeBytes(ByteBuffer.allocate(5).putInt(node).put((byte) kind).array());
    return keys;
  }

  Keys number(long number) {
    // Negative numbers sort before positive ones.
    out.writeBytes(ByteBuffer.allocate(Long.BYTES).putLong(number ^ Long.MIN_VALUE).array());
    return this;
  }

  Keys bytes(byte[] bytes) {
    length(bytes.length).out.writeBytes(bytes);
    return this;
  }

  /** Begins bytes of this length. */
  Keys length(int length) {
    out.writeBytes(ByteBuffer.allocate(Integer.BYTES).putInt(length).array());
    return this;
  }

  byte[] done() {
    return out.toByteArray();
  }

  /** The first key behind all keys that begin with these bytes. */
  static byte[] behind(byte[] prefix) {
    byte[] end = prefix.clone();
    for (int at = end.length - 1; at >= 0; at--) {
      if (++end[at] != 0) {
        return Arrays.copyOf(end, at + 1);
      }
    }
    throw new IllegalArgumentException("no key is behind a key of 0xFF alone");
  }

  /** Reader of a key's parts in the order in which they were written. */
  static final class Reader {
    private final ByteBuffer left;

    Reader(byte[] key) {
      left = ByteBuffer.wrap(key);
      left.position(5);
    }

    long number() {
      return left.getLong() ^ Long.MIN_VALUE;
    }

    byte[] bytes() {
      byte[] bytes = new byte[left.getInt()];
      left.get(bytes);
      return bytes;
    }
  }
}
