package jmsbridge.streams;

import java.util.List;

/** Sorted entries of one task, of bytes under bytes. */
interface Store {
  /** Entries that are read at once where many are. */
  int PAGE = 10_000;

  record Entry(byte[] key, byte[] value) {}

  /** The value under a key; null: none. */
  byte[] get(byte[] key);

  /** Writes an entry; UnsupportedOperationException if the store can only be read. */
  default void put(byte[] key, byte[] value) {
    throw new UnsupportedOperationException("this store can only be read");
  }

  /** Removes an entry if there is one; UnsupportedOperationException if the store can only be read. */
  default void remove(byte[] key) {
    throw new UnsupportedOperationException("this store can only be read");
  }

  /** The entries from a key (included) to a key (excluded) in their order, the first {@code limit} of them. */
  List<Entry> range(byte[] from, byte[] to, int limit);

  default List<Entry> range(byte[] from, byte[] to) {
    return range(from, to, Integer.MAX_VALUE);
  }

  /** Removes all entries of the node that kept them under a number. */
  default void removeAll(int node) {
    byte[] from = Keys.of(node, Character.MIN_VALUE).done();
    byte[] to = Keys.of(node, (char) Byte.MAX_VALUE).done();
    for (List<Entry> some = range(from, to, PAGE); !some.isEmpty(); some = range(from, to, PAGE)) {
      some.forEach(each -> remove(each.key()));
      from = some.get(some.size() - 1).key();
    }
  }

  default List<Entry> startingWith(byte[] prefix) {
    return range(prefix, Keys.behind(prefix));
  }
}
