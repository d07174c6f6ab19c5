package jmsbridge.streams;

import java.io.Serializable;
import java.util.Arrays;

/**
 * Range of a node's state to read. A limit that is null, or the least or the greatest number, does not limit.
 *
 * @param from the first key
 * @param to the last key, which is included
 * @param prefix the bytes with which keys begin
 * @param since the earliest start of a window
 * @param until the latest start of a window, which is included
 */
public record StateRange(byte[] from, byte[] to, byte[] prefix, long since, long until) implements Serializable {
  /** The only key; null: there may be several. */
  byte[] only() {
    return from != null && Arrays.equals(from, to) ? from : null;
  }

  /** The bytes before which no key is; null: there are none. */
  byte[] first() {
    return prefix == null || from != null && Arrays.compareUnsigned(from, prefix) > 0 ? from : prefix;
  }

  /** Whether neither this key nor a greater one is asked for. */
  boolean isBehind(byte[] key) {
    return to != null && Arrays.compareUnsigned(key, to) > 0
        || prefix != null && !Arrays.equals(key, 0, Math.min(key.length, prefix.length), prefix, 0, prefix.length);
  }

  boolean hasTimes() {
    return since != Long.MIN_VALUE || until != Long.MAX_VALUE;
  }
}
