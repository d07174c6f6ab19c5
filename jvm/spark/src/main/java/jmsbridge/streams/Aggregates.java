package jmsbridge.streams;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Supplier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Nodes that aggregate the records of each key. All that a record changes is computed before any of it is stored, so
 * that a record that fails changes nothing, not even the stream time.
 */
final class Aggregates {
  private Aggregates() {}

  abstract static class KeyedAggregate extends StatefulNode {
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
  static class Total extends KeyedAggregate implements TableState {
    private static final long serialVersionUID = 1L;
    private final long ttl;

    /** Creates the aggregate, which is removed {@code ttl} milliseconds after the last record of its key; below 0: never. */
    Total(String name, Aggregator aggregator, long ttl) {
      super(name, aggregator.type(), aggregator);
      this.ttl = ttl;
    }

    @Override
    void add(StreamRecord record) {
      long time = ttl < 0 ? time() : timeWith(record);
      if (ttl >= 0 && record.time() + ttl < time) {
        task.count(name, "late_records");
        return;
      }
      byte[] at = keys(STATE).bytes(record.key()).done();
      byte[] found = task.store().get(at);
      byte[] kept = found != null && ttl >= 0 && isOutdated(found, ttl, time) ? null : found;
      UnsafeRow before = buffer(kept);
      UnsafeRow after = with(before, record);
      long latest = latest(kept, record);
      InternalRow now = aggregator.result(after);
      InternalRow former = kept == null ? null : EvaluationException.orNull(() -> aggregator.result(before));
      if (ttl >= 0) {
        observe(time);
        expire();
      }
      if (ttl >= 0 && kept == null) {
        expireAfter(latest + ttl, at);
      }
      task.store().put(at, Rows.timed(latest, after));
      forward(record.withChange(now, former).withTime(latest));
    }

    @Override
    void expire() {
      if (ttl >= 0) {
        for (Store.Entry each : outdated(ttl)) {
          byte[] key = new Keys.Reader(each.key()).bytes();
          InternalRow former = EvaluationException.orNull(() -> aggregator.result(buffer(each.value())));
          forward(StreamRecord.of(key, null, Rows.time(each.value()) + ttl).withChange(null, former));
        }
      }
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

    @Override
    public long timeOf(byte[] of) {
      byte[] kept = task.store().get(keys(STATE).bytes(of).done());
      return kept == null ? Long.MIN_VALUE : Rows.time(kept);
    }
  }

  /**
   * What becomes of windows that end.
   *
   * @param grace milliseconds of stream time during which a window that has ended takes records
   * @param onlyFinal whether only the results of closed windows are forwarded, or each change
   * @param rejectsLate whether a record that is late for all windows is left to the topology's policy for failures
   */
  record Closing(long grace, boolean onlyFinal, boolean rejectsLate) {}

  /** Aggregates of windows of a key. */
  abstract static class WindowedAggregate extends KeyedAggregate {
    private static final long serialVersionUID = 1L;
    /** Results that were forwarded before their windows are closed. */
    private static final char EARLY = 'e';
    protected final long grace;
    protected final boolean onlyFinal;
    private final boolean rejectsLate;
    private final RowCheck rows;
    private Projection until;
    private transient UnsafeProjection copier;
    private transient GenericInternalRow window;
    private transient JoinedRow joined;

    WindowedAggregate(String name, Aggregator aggregator, Closing closing) {
      super(name, windowed(aggregator.type()), aggregator);
      grace = closing.grace;
      onlyFinal = closing.onlyFinal;
      rejectsLate = closing.rejectsLate;
      rows = new RowCheck(type);
    }

    /** Sets the condition on a result at which it is forwarded early. */
    final void until(Projection condition) {
      until = condition;
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

    /** The result of a window as it was before a record; null if it cannot be computed. */
    final InternalRow former(long start, long end, UnsafeRow buffer) {
      return EvaluationException.orNull(() -> row(start, end, buffer));
    }

    /** Removes what has expired, and forwards the results of closed windows, which come of many records. */
    @Override
    final void expire() {
      ended().forEach(this::end);
    }

    /** Removes an entry that has expired, and forwards the result of the window that it is. */
    void end(byte[] at) {
      byte[] kept = task.store().get(at);
      task.store().remove(at);
      if (onlyFinal && Keys.kind(at) == STATE) {
        if (kept == null) {
          throw new DamagedStateException("a window that ends is gone");
        }
        close(at, Rows.time(kept), () -> buffer(kept));
      }
    }

    /** Entries of which nothing is needed any more, in the order of the times at which that became so. */
    List<byte[]> ended() {
      return expired();
    }

    /** Forwards the final result of a window, which has a key in the store. */
    final void close(byte[] at, long latest, Supplier<UnsafeRow> buffer) {
      Keys.Reader reader = new Keys.Reader(at);
      byte[] of = reader.bytes();
      long start = reader.number();
      InternalRow early = until == null ? null : takeEarly(of, start);
      try {
        InternalRow last = row(start, end(start, latest), buffer.get());
        forward(StreamRecord.of(of, last, latest).withChange(last, early));
      } catch (EvaluationException failure) {
        reject(StreamRecord.of(of, null, latest), start, latest, failure);
      }
    }

    /** Whether windows give early results. */
    final boolean mayBeEarly() {
      return until != null;
    }

    /** The result of a window with a record, if the condition of early results is true; else null. */
    final InternalRow early(StreamRecord record, long start, long latest, UnsafeRow after) {
      if (until == null) {
        return null;
      }
      InternalRow result = row(start, end(start, latest), after);
      UnsafeRow isDue = until.apply(record.withTime(latest), result);
      return !isDue.isNullAt(0) && isDue.getBoolean(0) ? result : null;
    }

    final boolean wasEarly(byte[] of, long start) {
      return until != null && task.store().get(early(of, start)) != null;
    }

    /** Notes that a window gave an early result: the one that its final result replaces, null for that of another. */
    final void noteEarly(byte[] of, long start, InternalRow result) {
      task.store().put(early(of, start), result == null ? new byte[0] : Rows.bytes(result));
    }

    final void forwardEarly(StreamRecord record, long start, long latest, InternalRow result) {
      noteEarly(record.key(), start, result);
      forward(record.withChange(result, null).withTime(latest));
    }

    /** Forgets the early result of a window and returns it; null if it gave none. */
    final InternalRow takeEarly(byte[] of, long start) {
      byte[] at = early(of, start);
      byte[] kept = task.store().get(at);
      if (kept == null) {
        return null;
      }
      task.store().remove(at);
      return kept.length == 0 ? null : rows.kept(kept, 0);
    }

    private byte[] early(byte[] of, long start) {
      return keys(EARLY).bytes(of).number(start).done();
    }

    /** Rejects a record in one window alone, or a result of many records, which has no position. */
    final void reject(StreamRecord record, long start, long latest, EvaluationException failure) {
      task.reject(name, record, new TaskContext.Window(start, end(start, latest)), failure);
    }

    /** Counts a record that came after the last of its windows had closed, at a stream time that is known. */
    final void late(StreamRecord record, long start, long end, long closes) {
      task.late(name, record, Aggregator.count(record), new TaskContext.Window(start, end), time() - closes, rejectsLate);
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

  /** Aggregates of windows that follow one another. */
  static final class Tumbling extends WindowedAggregate {
    private static final long serialVersionUID = 1L;
    private final WindowGrid grid;

    Tumbling(String name, Aggregator aggregator, WindowGrid grid, Closing closing) {
      super(name, aggregator, closing);
      this.grid = grid;
    }

    @Override
    long end(long start, long latest) {
      return grid.end(start);
    }

    @Override
    void add(StreamRecord record) {
      long time = timeWith(record);
      long start = grid.start(record.time());
      long end = grid.end(start);
      long closes = end + grace - 1;
      if (closes < time) {
        late(record, start, end, closes);
        expire();
        return;
      }
      byte[] at = window(record, start);
      byte[] kept = task.store().get(at);
      UnsafeRow before = buffer(kept);
      UnsafeRow after = with(before, record);
      long latest = latest(kept, record);
      InternalRow now = onlyFinal ? early(record, start, latest, after) : row(start, end, after);
      InternalRow former = onlyFinal || kept == null ? null : former(start, end, before);
      observe(time);
      if (kept == null) {
        expireAfter(closes, at);
      }
      task.store().put(at, Rows.timed(latest, after));
      if (!onlyFinal) {
        forward(record.withChange(now, former).withTime(latest));
      } else if (now != null && !wasEarly(record.key(), start)) {
        forwardEarly(record, start, latest, now);
      }
      expire();
    }
  }

  /** Aggregates of sessions: a session ends when no record of its key has come for longer than {@code gap}. */
  static final class Session extends WindowedAggregate {
    private static final long serialVersionUID = 1L;
    private final long gap;

    Session(String name, Aggregator aggregator, long gap, Closing closing) {
      super(name, aggregator, closing);
      this.gap = gap;
    }

    @Override
    long end(long start, long latest) {
      return latest;
    }

    @Override
    void add(StreamRecord record) {
      long time = timeWith(record);
      long start = record.time();
      long end = record.time();
      // Sessions of the key by their starts. One that begins earlier can reach the record as well.
      byte[] ofKey = keys(STATE).bytes(record.key()).done();
      byte[] behind = window(record, record.time() + gap + 1);
      List<Store.Entry> near = task.store().range(ofKey, behind).stream()
          .filter(each -> Rows.time(each.value()) >= record.time() - gap).toList();
      for (Store.Entry each : near) {
        start = Math.min(start, start(each.key()));
        end = Math.max(end, Rows.time(each.value()));
      }
      if (closes(end) < time) {
        late(record, start, end, closes(end));
        expire();
        return;
      }
      UnsafeRow buffer = aggregator.empty();
      InternalRow former = null;
      List<StreamRecord> removals = new ArrayList<>(0);
      for (Store.Entry each : near) {
        UnsafeRow kept = buffer(each.value());
        buffer = aggregator.merge(buffer, kept);
        long from = start(each.key());
        long to = Rows.time(each.value());
        InternalRow row = onlyFinal ? null : former(from, to, kept);
        if (from == start && to == end) {
          former = row;
        } else if (row != null) {
          // The session is part of a longer one now.
          removals.add(record.withChange(null, row).withTime(to));
        }
      }
      buffer = with(buffer, record);
      InternalRow now = onlyFinal ? null : row(start, end, buffer);
      InternalRow early = early(record, start, end, buffer);
      observe(time);
      boolean wasEarly = false;
      // A session that becomes longer is noted once, for its first end, unless the clock asks when the next one ends.
      boolean isKept = false;
      for (Store.Entry each : near) {
        long from = start(each.key());
        if (wasEarly(record.key(), from)) {
          wasEarly = true;
          InternalRow given = takeEarly(record.key(), from);
          if (from == start) {
            former = given;
          } else if (given != null) {
            removals.add(record.withChange(null, given).withTime(Rows.time(each.value())));
          }
        }
        if (from != start || followsClock()) {
          task.store().remove(each.key());
          forgetExpiry(closes(Rows.time(each.value())), each.key());
        } else {
          isKept = true;
        }
      }
      byte[] at = window(record, start);
      task.store().put(at, Rows.timed(end, buffer));
      if (!isKept) {
        expireAfter(closes(end), at);
      }
      removals.forEach(this::forward);
      if (!onlyFinal) {
        forward(record.withChange(now, former).withTime(end));
      } else if (wasEarly) {
        noteEarly(record.key(), start, former);
      } else if (early != null) {
        forwardEarly(record, start, end, early);
      }
      expire();
    }

    /** Sessions that have ended; others that were noted for an earlier end, or are part of others now, are not. */
    @Override
    List<byte[]> ended() {
      Map<byte[], Long> ends = new TreeMap<>(Arrays::compareUnsigned);
      for (byte[] at : expired()) {
        byte[] kept = task.store().get(at);
        if (kept != null && closes(Rows.time(kept)) < time()) {
          ends.put(at, Rows.time(kept));
        } else if (kept != null) {
          expireAfter(closes(Rows.time(kept)), at);
        }
      }
      return ends.entrySet().stream().sorted(Map.Entry.comparingByValue()).map(Map.Entry::getKey).toList();
    }

    /** The latest stream time at which a session that ends at a time still takes records. */
    private long closes(long end) {
      return end + gap + grace;
    }
  }
}
