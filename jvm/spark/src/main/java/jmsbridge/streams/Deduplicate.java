package jmsbridge.streams;

import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;

/** Passes a record unless one with the same id has passed less than {@code within} milliseconds before or after it. */
final class Deduplicate extends StatefulNode {
  private static final long serialVersionUID = 1L;

  private final Projection id;
  private final KeyKind key;
  private final long within;
  /** The times of the records that have passed, by bucket and id. */
  private transient TimeBuckets passed;

  Deduplicate(String name, StructType type, Projection id, KeyKind key, long within) {
    super(name, type);
    this.id = id;
    this.key = key;
    this.within = within;
  }

  @Override
  void open(Task owner) {
    super.open(owner);
    passed = new TimeBuckets(owner.store(), () -> keys(STATE), within);
  }

  @Override
  void process(StreamRecord record, int port) {
    long time = observe(record.time());
    UnsafeRow found = id.apply(record, record.value(), key);
    if (found.isNullAt(0)) {
      task.count(name, "null_keys");
      forward(record);
      return;
    }
    byte[] bytes = found.getBytes();
    if (record.time() + within <= time) {
      // So old that what is known of its id may be gone.
      task.count(name, "late_records");
    } else if (isRepeated(bytes, record.time())) {
      task.count(name, "repeated_records");
    } else {
      long bucket = passed.of(record.time());
      passed.put(bucket, passed.key(bucket).bytes(bytes).done(), keys(STATE).number(record.time()).done());
      forward(record);
    }
    expire();
  }

  /** Whether a record of the id has passed near a time. There is one in a bucket at most, which is as long as `within`. */
  private boolean isRepeated(byte[] id, long time) {
    long own = passed.of(time);
    long last = Math.min(own + 1, passed.of(time()));
    for (long bucket = Math.max(own - 1, passed.oldest()); bucket <= last; bucket++) {
      byte[] found = task.store().get(passed.key(bucket).bytes(id).done());
      if (found != null && Math.abs(time - new Keys.Reader(found).number()) < within) {
        return true;
      }
    }
    return false;
  }

  /** A record that comes up to {@code within} late can still repeat one that passed so long before it. */
  @Override
  void expire() {
    passed.removeBefore(passed.of(time() - 2 * within));
  }
}
