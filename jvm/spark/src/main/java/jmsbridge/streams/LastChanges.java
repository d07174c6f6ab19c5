package jmsbridge.streams;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;

/**
 * Aggregate of all records of a key that forwards the last change of each key in a batch, when it is flushed. Until then
 * the changes are in memory alone.
 */
final class LastChanges extends Aggregates.Total {
  private static final long serialVersionUID = 1L;
  private static final long MOST_BYTES = 8 << 20;
  /** Bytes that the JVM takes for a change beside its key and its buffers. */
  private static final int CHANGE_BYTES = 350;

  private static final class Change {
    /** The buffer that is stored; null: none. */
    private UnsafeRow before;
    /** The buffer with all records since then; null: none came yet. */
    private UnsafeRow after;
    private long latest = StreamRecord.NO_TIME;
    /** The last record, without its value, and the record of a topic that it comes from. */
    private StreamRecord record;
    private ConsumerRecord<byte[], byte[]> from;
  }

  private final Map<ByteBuffer, Change> waiting = new LinkedHashMap<>();
  private long bytes;

  LastChanges(String name, Aggregator aggregator) {
    super(name, aggregator, -1);
  }

  @Override
  void add(StreamRecord record) {
    if (!task.collects()) {
      flush();
      super.add(record);
      return;
    }
    ByteBuffer key = ByteBuffer.wrap(record.key());
    Change change = waiting.get(key);
    boolean isFirst = change == null;
    if (isFirst) {
      change = kept(record.key());
    }
    UnsafeRow former = change.after == null ? change.before : change.after;
    UnsafeRow after = with(former == null ? aggregator.empty() : former, record);
    if (isFirst) {
      waiting.put(key, change);
      bytes += 2L * record.key().length + CHANGE_BYTES + (former == null ? 0 : former.getSizeInBytes());
    }
    bytes += after.getSizeInBytes() - (change.after == null ? 0 : change.after.getSizeInBytes());
    change.after = after;
    change.latest = Math.max(change.latest, record.time());
    change.record = record.withValue(null);
    change.from = task.current();
    if (bytes > MOST_BYTES) {
      flush();
    }
  }

  private Change kept(byte[] key) {
    Change change = new Change();
    byte[] kept = task.store().get(keys(STATE).bytes(key).done());
    if (kept != null) {
      change.before = buffer(kept);
      change.latest = Rows.time(kept);
    }
    return change;
  }

  @Override
  void flush() {
    if (waiting.isEmpty()) {
      return;
    }
    ConsumerRecord<byte[], byte[]> current = task.current();
    List<Change> changes = new ArrayList<>(waiting.values());
    waiting.clear();
    bytes = 0;
    for (Change each : changes) {
      task.store().put(keys(STATE).bytes(each.record.key()).done(), Rows.timed(each.latest, each.after));
    }
    for (Change each : changes) {
      task.resume(each.from);
      forward(each);
    }
    task.resume(current);
  }

  private void forward(Change change) {
    StreamRecord record = change.record.withTime(change.latest);
    InternalRow former =
        change.before == null ? null : EvaluationException.orNull(() -> aggregator.result(change.before));
    try {
      forward(record.withChange(aggregator.result(change.after), former));
    } catch (EvaluationException failure) {
      // What cannot be computed counts as no row; its records counted when they came.
      if (former != null) {
        forward(record.withChange(null, former));
      }
      task.reject(name, StreamRecord.of(record.key(), null, change.latest), failure);
    }
  }

  @Override
  public InternalRow lookUp(byte[] of) {
    Change change = waiting.get(ByteBuffer.wrap(of));
    return change == null ? super.lookUp(of) : aggregator.result(change.after);
  }

  @Override
  public long timeOf(byte[] of) {
    Change change = waiting.get(ByteBuffer.wrap(of));
    return change == null ? super.timeOf(of) : change.latest;
  }
}
