package jmsbridge.streams;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/** Keys of a store: parts of fixed or stated length, so that keys sort by their parts and no part runs into the next. */
final class Keys {
  private static final VarHandle INTS = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.BIG_ENDIAN);
  private static final VarHandle LONGS = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN);

  private byte[] out = new byte[48];
  private int size = Integer.BYTES + 1;

  private Keys(int node, char kind) {
    INTS.set(out, 0, node);
    out[Integer.BYTES] = (byte) kind;
  }

  /** Begins the key of an entry of one kind of a node. */
  static Keys of(int node, char kind) {
    return new Keys(node, kind);
  }

  Keys number(long number) {
    reserve(Long.BYTES);
    // Negative numbers sort before positive ones.
    LONGS.set(out, size, number ^ Long.MIN_VALUE);
    size += Long.BYTES;
    return this;
  }

  Keys bytes(byte[] bytes) {
    length(bytes.length).reserve(bytes.length);
    System.arraycopy(bytes, 0, out, size, bytes.length);
    size += bytes.length;
    return this;
  }

  /** Begins bytes of this length. */
  Keys length(int length) {
    reserve(Integer.BYTES);
    INTS.set(out, size, length);
    size += Integer.BYTES;
    return this;
  }

  byte[] done() {
    return Arrays.copyOf(out, size);
  }

  private void reserve(int more) {
    if (size + more > out.length) {
      out = Arrays.copyOf(out, Math.max(2 * out.length, size + more));
    }
  }

  /** Kind of the entry with a key. */
  static char kind(byte[] key) {
    return (char) key[Integer.BYTES];
  }

  /** The number at the end of a key. */
  static long last(byte[] key) {
    return (long) LONGS.get(key, key.length - Long.BYTES) ^ Long.MIN_VALUE;
  }

  /** A key as that of an entry of another kind, so many kinds behind its own. */
  static byte[] moved(byte[] key, int kinds) {
    byte[] moved = key.clone();
    moved[Integer.BYTES] += (byte) kinds;
    return moved;
  }

  /** The first key behind a key. */
  static byte[] next(byte[] key) {
    return Arrays.copyOf(key, key.length + 1);
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
      need(Integer.BYTES + 1);
      left.position(Integer.BYTES + 1);
    }

    long number() {
      need(Long.BYTES);
      return left.getLong() ^ Long.MIN_VALUE;
    }

    byte[] bytes() {
      need(Integer.BYTES);
      int length = left.getInt();
      need(length);
      byte[] bytes = new byte[length];
      left.get(bytes);
      return bytes;
    }

    private void need(int length) {
      if (length < 0 || length > left.remaining()) {
        throw new DamagedStateException("a key of %d bytes lacks parts".formatted(left.limit()));
      }
    }
  }
}
