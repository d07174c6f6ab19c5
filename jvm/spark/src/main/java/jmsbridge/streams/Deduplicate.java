package jmsbridge.streams;

import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;

/** Passes a record unless one with the same id has passed less than {@code within} milliseconds before or after it. */
final class Deduplicate extends StatefulNode {
  private static final long serialVersionUID = 1L;
  private static final int MOST_LOOKED_AT = 128;

  private final Projection id;
  private final long within;
  private transient long nextPass;
  private transient GradualPass pass;

  Deduplicate(String name, StructType type, Projection id, long within) {
    super(name, type);
    this.id = id;
    this.within = within;
  }

  @Override
  void open(TaskContext owner) {
    super.open(owner);
    nextPass = Long.MIN_VALUE;
    pass = new GradualPass(owner.store(), MOST_LOOKED_AT);
  }

  @Override
  void process(StreamRecord record, int port) {
    UnsafeRow identity = id.apply(record, record.value());
    long time = observe(record);
    if (identity.isNullAt(0)) {
      task.count(name, "null_keys");
      forward(record);
      return;
    }
    byte[] stateKey = keys(STATE).bytes(identity.getBytes()).done();
    byte[] passed = task.store().get(stateKey);
    if (record.time() + within <= time) {
      // So old that what is known of its id may be gone.
      task.count(name, "late_records");
    } else if (passed != null && Math.abs(record.time() - time(passed)) < within) {
      task.count(name, "repeated_records");
    } else {
      task.store().put(stateKey, keys(STATE).number(record.time()).done());
      forward(record);
    }
    expire();
  }

  /**
   * Removes old ids, by a pass over all of them for each {@code within} of stream time, some at a time. An index of what
   * expires when would cost more than all else. An id is old when no record that is not late can repeat it.
   */
  @Override
  void expire() {
    if ((pass.isUnderWay() || time() >= nextPass) && pass.isDue()) {
      byte[] kind = keys(STATE).done();
      if (pass.step(kind, Keys.behind(kind), each -> time(each.value()) + 2 * within < time())) {
        nextPass = time() + within;
      }
    }
  }

  private static long time(byte[] entry) {
    return new Keys.Reader(entry).number();
  }
}
