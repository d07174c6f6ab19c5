package jmsbridge.streams;

import java.util.List;
import java.util.function.Supplier;

/**
 * Entries of one kind of a node in buckets of time, which are removed as a whole: no index says when each entry expires.
 *
 * <p>Entries are removed some at a time, so that no record waits for a large bucket. Those that are still there must not
 * matter to the node.
 */
final class TimeBuckets {
  private static final int MOST_REMOVED = 512;

  private final Store store;
  private final Supplier<Keys> kind;
  private final long lengthMs;
  private final GradualPass removal;
  private long oldest;

  /** Buckets of {@code lengthMs} milliseconds; {@code kind} begins the key of an entry. */
  TimeBuckets(Store store, Supplier<Keys> kind, long lengthMs) {
    this.store = store;
    this.kind = kind;
    this.lengthMs = lengthMs;
    removal = new GradualPass(store, MOST_REMOVED);
    oldest = firstFrom(kind.get().done());
  }

  /** Number of the bucket of a time. */
  long of(long time) {
    return Math.floorDiv(time, lengthMs);
  }

  /** Begins the key of an entry in a bucket. */
  Keys key(long bucket) {
    return kind.get().number(bucket);
  }

  /** Number of a bucket before which no entry is needed; the greatest number if there are no entries. */
  long oldest() {
    return oldest;
  }

  /** Puts an entry, whose key begins with that of a bucket. */
  void put(long bucket, byte[] key, byte[] value) {
    store.put(key, value);
    oldest = Math.min(oldest, bucket);
  }

  /** Removes some entries of the buckets before one, if there are any and it is time for that. */
  void removeBefore(long bucket) {
    if (oldest < bucket && removal.isDue()) {
      byte[] end = key(bucket).done();
      if (removal.step(key(oldest).done(), end, each -> true)) {
        oldest = firstFrom(end);
      }
    }
  }

  private long firstFrom(byte[] key) {
    List<Store.Entry> first = store.range(key, Keys.behind(kind.get().done()), 1);
    return first.isEmpty() ? Long.MAX_VALUE : new Keys.Reader(first.get(0).key()).number();
  }
}
