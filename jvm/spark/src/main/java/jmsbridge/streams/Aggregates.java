package jmsbridge.streams;

import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Nodes that aggregate the records of each key. */
final class Aggregates {
  private Aggregates() {}

  private abstract static class KeyedAggregate extends StatefulNode {
    private static final long serialVersionUID = 1L;
    protected final Aggregator aggregator;

    KeyedAggregate(String name, StructType type, Aggregator aggregator) {
      super(name, type);
      this.aggregator = aggregator;
    }

    @Override
    final void process(StreamRecord record, int port) {
      if (record.key() == null || record.value() == null) {
        task.count(name, record.key() == null ? "null_keys" : "null_values");
        return;
      }
      add(record);
    }

    abstract void add(StreamRecord record);

    /** The buffer in an entry, behind the time of its latest record. */
    final UnsafeRow buffer(byte[] kept) {
      return kept == null ? aggregator.empty() : Rows.timedRow(kept, aggregator.buffers());
    }

    /** Time of the latest record of an entry, which may be null, and of one more record. */
    final long latest(byte[] kept, StreamRecord record) {
      return kept == null ? record.time() : Math.max(Rows.time(kept), record.time());
    }

    final UnsafeRow with(UnsafeRow buffer, StreamRecord record) {
      return aggregator.add(buffer, record);
    }
  }

  /** Aggregate of all records of a key. */
  static final class Total extends KeyedAggregate implements TableState {
    private static final long serialVersionUID = 1L;

    Total(String name, Aggregator aggregator) {
      super(name, aggregator.type(), aggregator);
    }

    @Override
    void add(StreamRecord record) {
      byte[] at = keys(STATE).bytes(record.key()).done();
      byte[] kept = task.store().get(at);
      UnsafeRow before = buffer(kept);
      UnsafeRow after = with(before, record);
      long latest = latest(kept, record);
      InternalRow former = kept == null ? null : aggregator.result(before);
      InternalRow now = aggregator.result(after);
      task.store().put(at, Rows.timed(latest, after));
      forward(record.withChange(now, former).withTime(latest));
    }

    @Override
    StreamRecord shown(Store.Entry entry) {
      byte[] of = new Keys.Reader(entry.key()).bytes();
      return StreamRecord.of(of, aggregator.result(buffer(entry.value())), Rows.time(entry.value()));
    }

    @Override
    public InternalRow lookUp(byte[] of) {
      byte[] kept = task.store().get(keys(STATE).bytes(of).done());
      return kept == null ? null : aggregator.result(buffer(kept));
    }
  }

  /** Aggregates of windows of a key; the results of a closed window alone if {@code onlyFinal}, else each change. */
  private abstract static class WindowedAggregate extends KeyedAggregate {
    private static final long serialVersionUID = 1L;
    protected final long grace;
    protected final boolean onlyFinal;
    private transient UnsafeProjection copier;
    private transient GenericInternalRow window;
    private transient JoinedRow joined;

    WindowedAggregate(String name, Aggregator aggregator, long grace, boolean onlyFinal) {
      super(name, windowed(aggregator.type()), aggregator);
      this.grace = grace;
      this.onlyFinal = onlyFinal;
    }

    private static StructType windowed(StructType result) {
      StructType type = new StructType()
          .add("window_start", DataTypes.TimestampType)
          .add("window_end", DataTypes.TimestampType);
      for (StructField each : result.fields()) {
        type = type.add(each);
      }
      return type;
    }

    final InternalRow row(long start, long end, UnsafeRow buffer) {
      if (copier == null) {
        copier = Rows.copier(type);
        window = new GenericInternalRow(2);
        joined = new JoinedRow();
      }
      window.update(0, start * 1000);
      window.update(1, end * 1000);
      return copier.apply(joined.apply(window, aggregator.result(buffer))).copy();
    }

    /** End of the window that begins at a time and whose latest record has a time. */
    abstract long end(long start, long latest);

    @Override
    final StreamRecord shown(Store.Entry entry) {
      Keys.Reader reader = new Keys.Reader(entry.key());
      byte[] of = reader.bytes();
      long start = reader.number();
      long latest = Rows.time(entry.value());
      return StreamRecord.of(of, row(start, end(start, latest), buffer(entry.value())), latest);
    }

    /** Removes what has expired, and forwards the results of closed windows, which come of many records. */
    @Override
    final void expire() {
      for (byte[] at : expired()) {
        byte[] kept = task.store().get(at);
        task.store().remove(at);
        if (onlyFinal && Keys.kind(at) == STATE) {
          if (kept == null) {
            throw new DamagedStateException("a window that ends is gone");
          }
          forward(shown(new Store.Entry(at, kept)));
        }
      }
    }

    /** Puts a window, and forwards the change; {@code before} is null for a new one. */
    final void put(StreamRecord record, byte[] at, long start, long latest, UnsafeRow before, UnsafeRow after) {
      task.store().put(at, Rows.timed(latest, after));
      if (!onlyFinal) {
        long end = end(start, latest);
        InternalRow former = before == null ? null : row(start, end, before);
        forward(record.withChange(row(start, end, after), former).withTime(latest));
      }
    }

    final byte[] window(StreamRecord record, long start) {
      return keys(STATE).bytes(record.key()).number(start).done();
    }

    static long start(byte[] at) {
      Keys.Reader reader = new Keys.Reader(at);
      reader.bytes();
      return reader.number();
    }
  }

  /**
   * Aggregates of tumbling or hopping windows, which begin at multiples of {@code advance} from 0 on, as in Kafka Streams;
   * ends are excluded.
   */
  static final class Hopping extends WindowedAggregate {
    private static final long serialVersionUID = 1L;
    private final long size;
    private final long advance;

    Hopping(String name, Aggregator aggregator, long size, long advance, long grace, boolean onlyFinal) {
      super(name, aggregator, grace, onlyFinal);
      this.size = size;
      this.advance = advance;
    }

    @Override
    long end(long start, long latest) {
      return start + size;
    }

    @Override
    void add(StreamRecord record) {
      long time = observe(record);
      long first = Math.max(0, (Math.floorDiv(record.time() - size, advance) + 1) * advance);
      boolean isLate = true;
      for (long start = first; start <= record.time(); start += advance) {
        if (start + size + grace > time) {
          isLate = false;
          add(record, start);
        }
      }
      if (isLate) {
        task.count(name, "late_records");
      }
      expire();
    }

    private void add(StreamRecord record, long start) {
      byte[] at = window(record, start);
      byte[] kept = task.store().get(at);
      UnsafeRow before = buffer(kept);
      UnsafeRow after = with(before, record);
      if (kept == null) {
        expireAfter(start + size + grace - 1, at);
      }
      put(record, at, start, latest(kept, record), kept == null ? null : before, after);
    }
  }

  /** Aggregates of sessions: a session ends when no record of its key has come for longer than {@code gap}. */
  static final class Session extends WindowedAggregate {
    private static final long serialVersionUID = 1L;
    private final long gap;

    Session(String name, Aggregator aggregator, long gap, long grace, boolean onlyFinal) {
      super(name, aggregator, grace, onlyFinal);
      this.gap = gap;
    }

    @Override
    long end(long start, long latest) {
      return latest;
    }

    @Override
    void add(StreamRecord record) {
      long time = observe(record);
      long start = record.time();
      long end = record.time();
      UnsafeRow buffer = aggregator.empty();
      // Sessions of the key by their starts. One that begins earlier can reach the record as well.
      byte[] ofKey = keys(STATE).bytes(record.key()).done();
      byte[] behind = window(record, record.time() + gap + 1);
      List<Store.Entry> near = task.store().range(ofKey, behind).stream()
          .filter(each -> Rows.time(each.value()) >= record.time() - gap).toList();
      for (Store.Entry each : near) {
        start = Math.min(start, start(each.key()));
        end = Math.max(end, Rows.time(each.value()));
      }
      if (end + gap + grace < time) {
        task.count(name, "late_records");
        expire();
        return;
      }
      for (Store.Entry each : near) {
        UnsafeRow former = buffer(each.value());
        buffer = aggregator.merge(buffer, former);
        task.store().remove(each.key());
        forgetExpiry(Rows.time(each.value()) + gap + grace, each.key());
        if (!onlyFinal && (start(each.key()) != start || Rows.time(each.value()) != end)) {
          // The session is part of a longer one now.
          InternalRow row = row(start(each.key()), Rows.time(each.value()), former);
          forward(record.withChange(null, row).withTime(Rows.time(each.value())));
        }
      }
      buffer = with(buffer, record);
      byte[] at = window(record, start);
      task.store().put(at, Rows.timed(end, buffer));
      expireAfter(end + gap + grace, at);
      if (!onlyFinal) {
        long from = start;
        long to = end;
        InternalRow former = near.stream()
            .filter(each -> start(each.key()) == from && Rows.time(each.value()) == to)
            .findFirst().map(each -> row(from, to, buffer(each.value()))).orElse(null);
        forward(record.withChange(row(start, end, buffer), former).withTime(end));
      }
      expire();
    }
  }

  /** Aggregates of sliding windows: all distinct sets of a key's records whose times differ by {@code size} at most. */
  static final class Sliding extends WindowedAggregate {
    private static final long serialVersionUID = 1L;
    private static final char RECORDS = 'r';
    private final long size;
    private final RowCheck records;

    Sliding(String name, Aggregator aggregator, long size, long grace, boolean onlyFinal, StructType record) {
      super(name, aggregator, grace, onlyFinal);
      this.size = size;
      records = new RowCheck(record);
    }

    @Override
    long end(long start, long latest) {
      return start + size;
    }

    @Override
    void add(StreamRecord record) {
      long time = observe(record);
      if (record.time() + size + grace < time) {
        task.count(name, "late_records");
        expire();
        return;
      }
      byte[] entry = keys(RECORDS).bytes(record.key()).number(record.time()).number(nextNumber()).done();
      long[] others = times(record);
      task.store().put(entry, Rows.timed(record.time(), record.value()));
      expireAfter(record.time() + 2 * size + grace + 1, entry);
      // Windows that exist and take the record.
      byte[] first = window(record, record.time() - size);
      byte[] behind = window(record, record.time() + 1);
      for (Store.Entry each : task.store().range(first, behind)) {
        if (start(each.key()) + size + grace >= time) {
          UnsafeRow before = buffer(each.value());
          put(record, start(each.key()), latest(each.value(), record), before, with(before, record));
        }
      }
      // New windows: the one that ends with the record, one behind it, and those behind records before it.
      create(record, record.time() - size);
      for (long other : others) {
        if (other > record.time()) {
          create(record, record.time() + 1);
        } else if (other < record.time()) {
          create(record, other + 1);
        }
      }
      expire();
    }

    /** Times of the records of the key that are near enough to share a window with the record. */
    private long[] times(StreamRecord record) {
      byte[] first = keys(RECORDS).bytes(record.key()).number(record.time() - size - 1).done();
      byte[] behind = keys(RECORDS).bytes(record.key()).number(record.time() + size + 2).done();
      return task.store().range(first, behind).stream().mapToLong(each -> Rows.time(each.value())).distinct().toArray();
    }

    private void create(StreamRecord record, long start) {
      if (start + size + grace < time() || task.store().get(window(record, start)) != null) {
        return;
      }
      byte[] first = keys(RECORDS).bytes(record.key()).number(start).done();
      byte[] behind = keys(RECORDS).bytes(record.key()).number(start + size + 1).done();
      UnsafeRow buffer = aggregator.empty();
      long latest = Long.MIN_VALUE;
      for (Store.Entry each : task.store().range(first, behind)) {
        StreamRecord one = record.withTime(Rows.time(each.value()));
        buffer = with(buffer, one.withValue(Rows.timedRow(each.value(), records)));
        latest = one.time();
      }
      if (latest != Long.MIN_VALUE) {
        put(record, start, latest, null, buffer);
      }
    }

    private void put(StreamRecord record, long start, long latest, UnsafeRow before, UnsafeRow after) {
      byte[] at = window(record, start);
      if (before == null) {
        expireAfter(start + size + grace, at);
      }
      put(record, at, start, latest, before, after);
    }
  }
}
