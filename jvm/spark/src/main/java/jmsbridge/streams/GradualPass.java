package jmsbridge.streams;

import java.util.List;
import java.util.function.Predicate;

/** Pass over entries of a store that removes old ones, some at a time, so that no record waits for many. */
final class GradualPass {
  /** Records between two steps of the pass. */
  private static final int RECORDS = 64;

  private final Store store;
  private final int most;
  private int records;
  /** Where the pass goes on; null: none is under way. */
  private byte[] from;

  /** Creates a pass of which a step looks at {@code most} entries: more than {@link #RECORDS} records can add. */
  GradualPass(Store store, int most) {
    this.store = store;
    this.most = most;
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
    List<Store.Entry> some = store.range(from == null ? first : from, end, most);
    for (Store.Entry each : some) {
      if (isOld.test(each)) {
        store.remove(each.key());
      }
    }
    from = some.size() < most ? null : Keys.next(some.get(most - 1).key());
    return from == null;
  }
}
