package jmsbridge.streams;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;

/** Table of the latest value of each key; forwards each change with the value that it replaces. */
class ToTable extends StatefulNode implements TableState {
  private static final long serialVersionUID = 1L;
  private final RowCheck rows;
  private final long ttl;

  /** Creates the table, whose rows are removed {@code ttl} milliseconds after their last update; below 0: never. */
  ToTable(String name, StructType type, long ttl) {
    super(name, type);
    rows = new RowCheck(type);
    this.ttl = ttl;
  }

  @Override
  void process(StreamRecord record, int port) {
    if (record.key() == null) {
      task.count(name, "null_keys");
      return;
    }
    if (ttl >= 0) {
      long time = observe(record);
      expire();
      if (record.time() + ttl < time) {
        task.count(name, "late_records");
        return;
      }
    }
    change(record, record.value());
  }

  /** Keeps a value under the key of a record, or none if it is null, and forwards the change. */
  final void change(StreamRecord record, InternalRow now) {
    byte[] stateKey = keys(STATE).bytes(record.key()).done();
    byte[] kept = task.store().get(stateKey);
    if (now != null) {
      if (ttl >= 0 && (kept == null || record.time() < Rows.time(kept))) {
        expireAfter(record.time() + ttl, stateKey);
      }
      task.store().put(stateKey, Rows.timed(record.time(), now));
    } else if (kept == null) {
      return;
    } else {
      task.store().remove(stateKey);
    }
    forward(record.withChange(now, kept == null ? null : Rows.timedRow(kept, rows)));
  }

  @Override
  final void expire() {
    if (ttl >= 0) {
      for (Store.Entry entry : outdated(ttl)) {
        byte[] key = new Keys.Reader(entry.key()).bytes();
        InternalRow former = Rows.timedRow(entry.value(), rows);
        forward(StreamRecord.of(key, null, Rows.time(entry.value()) + ttl).withChange(null, former));
      }
    }
  }

  @Override
  final StreamRecord shown(Store.Entry entry) {
    InternalRow row = Rows.timedRow(entry.value(), rows);
    return StreamRecord.of(new Keys.Reader(entry.key()).bytes(), row, Rows.time(entry.value()));
  }

  @Override
  public final InternalRow lookUp(byte[] key) {
    byte[] kept = task.store().get(keys(STATE).bytes(key).done());
    return kept == null ? null : Rows.timedRow(kept, rows);
  }

  @Override
  public final long timeOf(byte[] key) {
    byte[] kept = task.store().get(keys(STATE).bytes(key).done());
    return kept == null ? Long.MIN_VALUE : Rows.time(kept);
  }
}
