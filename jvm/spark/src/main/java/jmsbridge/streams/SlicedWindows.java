package jmsbridge.streams;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;

/**
 * Aggregates of hopping windows, of which the store has slices: a record changes the one that it lies in. A slice is
 * part of a window as a whole or not at all, so that the merged slices of a window are its records.
 */
final class SlicedWindows extends Aggregates.WindowedAggregate {
  private static final long serialVersionUID = 1L;
  /** Slices by key and beginning. Windows have no entries but those that tell when they end. */
  private static final char SLICES = 'l';
  private final WindowGrid.Multiples grid;

  SlicedWindows(String name, Aggregator aggregator, WindowGrid.Multiples grid, Aggregates.Closing closing) {
    super(name, aggregator, closing);
    this.grid = grid;
  }

  /** Buffer of slices that follow one another, or why they have none, and the time of their latest record. */
  private record Merged(UnsafeRow buffer, long latest, EvaluationException failure) {
    /** The buffer; EvaluationException if there is none. */
    UnsafeRow checked() {
      if (failure != null) {
        throw failure;
      }
      return buffer;
    }
  }

  private record Slice(long start, Merged content) {}

  /** What a record changes in one window: {@code former} and {@code now} are results, null for none. */
  private record Change(long start, long latest, InternalRow former, InternalRow now) {}

  @Override
  long end(long start, long latest) {
    return grid.end(start);
  }

  /** The latest stream time at which a window that begins at a time still takes records. */
  private long closes(long start) {
    return grid.end(start) + grace - 1;
  }

  @Override
  void add(StreamRecord record) {
    long time = timeWith(record);
    long last = grid.start(record.time());
    if (closes(last) < time) {
      late(record, last, grid.end(last), closes(last));
      expire();
      return;
    }
    // The first window with the record that is not closed.
    long first = Math.max(grid.first(record.time()), grid.first(time - grace));
    byte[] at = slice(record.key(), grid.slice(record.time()));
    byte[] kept = task.store().get(at);
    Merged before = kept == null ? null : merged(kept);
    Merged after = new Merged(with(buffer(kept), record), latest(kept, record), null);
    List<Change> changes = onlyFinal && !mayBeEarly() ? List.of() : changes(record, first, last, before, after);
    observe(time);
    task.store().put(at, Rows.timed(after.latest, after.buffer));
    if (kept == null) {
      noteEnds(record.key(), first, last);
    }
    for (Change each : changes) {
      if (onlyFinal) {
        forwardEarly(record, each.start, each.latest, each.now);
      } else {
        forward(record.withChange(each.now, each.former).withTime(each.latest));
      }
    }
    expire();
  }

  /**
   * Results that a record changes, whose slice goes from a content, null for none, to another, in the windows from one to
   * another. A window that cannot be computed is a dead letter about it, and has no result.
   *
   * @throws EvaluationException if none of them can be computed
   */
  private List<Change> changes(StreamRecord record, long first, long last, Merged before, Merged after) {
    long own = grid.slice(record.time());
    List<Slice> earlier = slices(record.key(), first, own);
    List<Slice> later = slices(record.key(), own + 1, grid.end(last));
    Merged[] former = withEarlier(earlier, before);
    Merged[] now = withEarlier(earlier, after);
    Merged[] behind = new Merged[later.size() + 1];
    for (int at = 0; at < later.size(); at++) {
      behind[at + 1] = merge(behind[at], later.get(at).content);
    }
    List<Change> changes = new ArrayList<>();
    List<Change> failed = new ArrayList<>(0);
    EvaluationException why = null;
    int from = 0;
    int to = 0;
    boolean isTaken = false;
    for (long start = first; start <= last; start += grid.advance()) {
      while (from < earlier.size() && earlier.get(from).start < start) {
        from++;
      }
      while (to < later.size() && later.get(to).start < grid.end(start)) {
        to++;
      }
      Merged content = merge(now[from], behind[to]);
      try {
        Change change = change(record, start, merge(former[from], behind[to]), content);
        isTaken = true;
        if (change.now != null) {
          changes.add(change);
        }
      } catch (EvaluationException failure) {
        why = failure;
        failed.add(new Change(start, content.latest, null, null));
      }
    }
    if (!isTaken) {
      throw why;
    }
    for (Change each : failed) {
      reject(record, each.start, each.latest, why);
    }
    return changes;
  }

  private Change change(StreamRecord record, long start, Merged before, Merged after) {
    if (onlyFinal) {
      InternalRow early =
          wasEarly(record.key(), start) ? null : early(record, start, after.latest, after.checked());
      return new Change(start, after.latest, null, early);
    }
    long end = grid.end(start);
    InternalRow former = before == null || before.failure != null ? null : former(start, end, before.buffer);
    return new Change(start, after.latest, former, row(start, end, after.checked()));
  }

  /** Contents of a slice, which may be null, with those before it from each of them on; the last one is its own. */
  private Merged[] withEarlier(List<Slice> earlier, Merged own) {
    Merged[] merged = new Merged[earlier.size() + 1];
    merged[earlier.size()] = own;
    for (int at = earlier.size() - 1; at >= 0; at--) {
      merged[at] = merge(earlier.get(at).content, merged[at + 1]);
    }
    return merged;
  }

  /** Notes the ends of windows from one to another, which have a new slice; those that have others are noted. */
  private void noteEnds(byte[] of, long first, long last) {
    if (!onlyFinal) {
      // Nothing is due but the removal of slices, with the last window that has them.
      expireAfter(closes(last), window(of, last));
      return;
    }
    // Noted are those with an earlier slice and those with a later one; the others lie between them.
    boolean isBetween = false;
    for (long start = last; start >= first; start -= grid.advance()) {
      if (!expiresAfter(closes(start), window(of, start))) {
        expireAfter(closes(start), window(of, start));
        isBetween = true;
      } else if (isBetween) {
        return;
      }
    }
  }

  @Override
  void end(byte[] at) {
    // Readers of a live state see that the window is closed before its slices go.
    save();
    Keys.Reader reader = new Keys.Reader(at);
    byte[] of = reader.bytes();
    long start = reader.number();
    long next = start + grid.advance();
    List<Slice> slices = slices(of, start, onlyFinal ? grid.end(start) : next);
    slices.stream().filter(each -> each.start < next).forEach(each -> task.store().remove(slice(of, each.start)));
    if (onlyFinal) {
      Merged content = content(slices);
      if (content == null) {
        throw new DamagedStateException("a window that ends is gone");
      }
      close(at, content.latest, content::checked);
    }
  }

  /** The windows that are not closed and can be computed, as entries that {@link #shown} takes. */
  @Override
  List<Store.Entry> states(byte[] from, byte[] to, int limit) {
    List<Store.Entry> windows = new ArrayList<>();
    byte[] behind = Keys.moved(to, SLICES - STATE);
    byte[] at = from;
    while (windows.size() < limit) {
      List<Store.Entry> next = task.store().range(Keys.moved(at, SLICES - STATE), behind, 1);
      if (next.isEmpty()) {
        break;
      }
      Keys.Reader reader = new Keys.Reader(next.get(0).key());
      byte[] of = reader.bytes();
      long slice = reader.number();
      long start = grid.first(slice);
      while (start <= slice && Arrays.compareUnsigned(window(of, start), at) < 0) {
        start += grid.advance();
      }
      at = window(of, start);
      if (start <= slice) {
        Merged content = content(slices(of, start, grid.end(start)));
        // Looked at after the slices, which are all there as long as the window is not closed.
        if (content != null && content.failure == null && closes(start) >= shownTime()) {
          windows.add(new Store.Entry(at, Rows.timed(content.latest, content.buffer)));
        }
        at = Keys.next(at);
      }
    }
    return windows;
  }

  private Merged content(List<Slice> slices) {
    Merged content = null;
    for (Slice each : slices) {
      content = merge(content, each.content);
    }
    return content;
  }

  /** Slices of a key that begin from a time (included) to a time (excluded). */
  private List<Slice> slices(byte[] of, long from, long to) {
    List<Slice> slices = new ArrayList<>();
    for (Store.Entry each : task.store().range(slice(of, from), slice(of, to))) {
      slices.add(new Slice(Keys.last(each.key()), merged(each.value())));
    }
    return slices;
  }

  private Merged merged(byte[] kept) {
    return new Merged(buffer(kept), Rows.time(kept), null);
  }

  /** The merged contents of two parts, either of which may be null. */
  private Merged merge(Merged one, Merged other) {
    if (one == null || other == null) {
      return one == null ? other : one;
    }
    long latest = Math.max(one.latest, other.latest);
    try {
      return new Merged(aggregator.merge(one.checked(), other.checked()), latest, null);
    } catch (EvaluationException failure) {
      return new Merged(null, latest, failure);
    }
  }

  private byte[] slice(byte[] of, long start) {
    return keys(SLICES).bytes(of).number(start).done();
  }

  private byte[] window(byte[] of, long start) {
    return keys(STATE).bytes(of).number(start).done();
  }
}
