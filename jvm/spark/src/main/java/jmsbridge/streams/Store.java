package jmsbridge.streams;

import java.util.List;

/** Sorted entries of one task, of bytes under bytes. */
interface Store {
  record Entry(byte[] key, byte[] value) {}

  /** The value under a key; null: none. */
  byte[] get(byte[] key);

  void put(byte[] key, byte[] value);

  void remove(byte[] key);

  /** Removes the entries from a key (included) to a key (excluded). */
  void removeRange(byte[] from, byte[] to);

  /** The entries from a key (included) to a key (excluded) in their order, the first {@code limit} of them. */
  List<Entry> range(byte[] from, byte[] to, int limit);

  default List<Entry> range(byte[] from, byte[] to) {
    return range(from, to, Integer.MAX_VALUE);
  }

  /** Removes all entries of the node that kept them under a number. */
  default void removeAll(int node) {
    removeRange(Keys.of(node, Character.MIN_VALUE).done(), Keys.of(node, (char) Byte.MAX_VALUE).done());
  }

  default List<Entry> startingWith(byte[] prefix) {
    return range(prefix, Keys.behind(prefix));
  }
}
