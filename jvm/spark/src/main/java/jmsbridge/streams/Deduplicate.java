package jmsbridge.streams;

import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;

/** Passes a record unless one with the same id has passed less than {@code within} milliseconds before or after it. */
final class Deduplicate extends StatefulNode {
  private static final long serialVersionUID = 1L;

  private final Projection id;
  private final KeyKind key;
  private final long within;

  Deduplicate(String name, StructType type, Projection id, KeyKind key, long within) {
    super(name, type);
    this.id = id;
    this.key = key;
    this.within = within;
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
    byte[] at = keys(STATE).bytes(found.getBytes()).done();
    byte[] passed = task.store().get(at);
    if (record.time() + within <= time) {
      // So old that what is known of its id may be gone.
      task.count(name, "late_records");
    } else if (passed != null && Math.abs(record.time() - new Keys.Reader(passed).number()) < within) {
      task.count(name, "repeated_records");
    } else {
      task.store().put(at, keys(STATE).number(record.time()).done());
      if (passed == null) {
        expireAfter(end(record.time()), at);
      }
      forward(record);
    }
    expire();
  }

  @Override
  long slackMs() {
    return SLACK_MS;
  }

  /** A record that comes up to {@code within} late can still repeat one that passed so long before it. */
  private long end(long passed) {
    return passed + 2 * within;
  }

  @Override
  void expire() {
    for (byte[] at : expired()) {
      long end = end(new Keys.Reader(task.store().get(at)).number());
      if (end < time()) {
        task.store().remove(at);
      } else {
        // Another record of the id has passed since.
        expireAfter(end, at);
      }
    }
  }
}
