package jmsbridge.streams;

import java.util.List;

/** Sorted entries of one task, of bytes under bytes. */
interface Store {
  record Entry(byte[] key, byte[] value) {}

  /** The value under a key; null: none. */
  byte[] get(byte[] key);

  void put(byte[] key, byte[] value);

  void remove(byte[] key);

  /** The entries from a key (included) to a key (excluded) in their order, the first {@code limit} of them. */
  List<Entry> range(byte[] from, byte[] to, int limit);

  default List<Entry> range(byte[] from, byte[] to) {
    return range(from, to, Integer.MAX_VALUE);
  }

  /** Removes all entries of the node that kept them under a number. */
  default void removeAll(int node) {
    byte[] at = Keys.of(node, Character.MIN_VALUE).done();
    byte[] end = Keys.of(node, (char) Byte.MAX_VALUE).done();
    for (List<Entry> page = range(at, end, 1000); !page.isEmpty(); page = range(at, end, 1000)) {
      page.forEach(each -> remove(each.key()));
      at = page.get(page.size() - 1).key();
    }
  }

  default List<Entry> startingWith(byte[] prefix) {
    return range(prefix, Keys.behind(prefix));
  }
}
