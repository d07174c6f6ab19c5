package jmsbridge.streams;

import java.util.List;
import java.util.function.Predicate;

/** Pass over entries of a store that removes old ones, some at a time, so that no record waits for many. */
final class GradualPass {
  /** Records between two steps of the pass. */
  private static final int RECORDS = 64;

  private final Store store;
  private final int mostEntries;
  private int records;
  /** Where the pass goes on; null: none is under way. */
  private byte[] from;

  /** Creates a pass of which a step looks at so many entries: more than {@link #RECORDS} records can add. */
  GradualPass(Store store, int mostEntries) {
    this.store = store;
    this.mostEntries = mostEntries;
  }

  boolean isUnderWay() {
    return from != null;
  }

  /** Counts a record; true if a step is due. */
  boolean isDue() {
    return ++records % RECORDS == 0;
  }

  /** Takes a step through the entries from a key to another (excluded); true if it was the last one. */
  boolean step(byte[] first, byte[] end, Predicate<Store.Entry> isOld) {
    // Not from the first key again, where RocksDB would pass each entry that was removed.
    List<Store.Entry> some = store.range(from == null ? first : from, end, mostEntries);
    for (Store.Entry entry : some) {
      if (isOld.test(entry)) {
        store.remove(entry.key());
      }
    }
    from = some.size() < mostEntries ? null : Keys.next(some.get(mostEntries - 1).key());
    return from == null;
  }
}
