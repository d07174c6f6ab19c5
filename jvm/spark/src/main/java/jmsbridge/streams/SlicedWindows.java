package jmsbridge.streams;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Set;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import jmsbridge.streams.SliceStacks.Merged;
import jmsbridge.streams.SliceStacks.Slice;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;

/**
 * Aggregates of windows that overlap, of which the store has slices: a record changes the one that it lies in. A slice is
 * part of a window as a whole or not at all, so that the merged slices of a window are its records.
 */
abstract class SlicedWindows extends Aggregates.WindowedAggregate {
  private static final long serialVersionUID = 1L;
  /** Slices by key and beginning. Windows have no entries but those that tell when they end. */
  private static final char SLICES = 'l';
  /** Bytes of merged slices that are kept for the windows that end next; further keys merge the slices of each window. */
  private static final long MOST_BYTES = 16 << 20;
  /** Milliseconds from the beginning of a window to the first time behind it. */
  protected final long length;
  private transient Map<ByteBuffer, SliceStacks> ending;
  private transient long endingBytes;
  /** The first time behind all slices that {@link #ending} has. */
  private transient long endingTo;

  private SlicedWindows(String name, Aggregator aggregator, long length, Aggregates.Closing closing) {
    super(name, aggregator, closing);
    this.length = length;
  }

  /** Windows of one size that begin at multiples of a time. */
  static final class Hopping extends SlicedWindows {
    private static final long serialVersionUID = 1L;
    private final WindowGrid.Multiples grid;

    Hopping(String name, Aggregator aggregator, WindowGrid.Multiples grid, Aggregates.Closing closing) {
      super(name, aggregator, grid.size(), closing);
      this.grid = grid;
    }

    @Override
    long end(long start, long latest) {
      return grid.end(start);
    }

    @Override
    long slice(long time) {
      return grid.slice(time);
    }

    @Override
    long first(long time) {
      return grid.first(time);
    }

    @Override
    long last(long time) {
      return grid.start(time);
    }

    @Override
    long lastChanged(long slice, boolean isNew) {
      return grid.start(slice);
    }

    @Override
    SortedSet<Long> starts(List<Slice> slices, long from, long to) {
      SortedSet<Long> starts = new TreeSet<>();
      for (long start = from; start <= to; start += grid.advance()) {
        starts.add(start);
      }
      return starts;
    }

    @Override
    long[] lastSlices(long start) {
      long cut = grid.slice(start + grid.advance() - 1);
      return cut == start ? new long[] {start} : new long[] {start, cut};
    }

    @Override
    void noteEnds(byte[] of, long slice, long first) {
      long last = grid.start(slice);
      if (!onlyFinal) {
        // Nothing is due but the removal of slices, with the last window that has them.
        noteEnd(of, last);
        return;
      }
      // Noted are those with an earlier slice and those with a later one; the others lie between them.
      boolean isBetween = false;
      for (long start = last; start >= first; start -= grid.advance()) {
        if (!isEndNoted(of, start)) {
          noteEnd(of, start);
          isBetween = true;
        } else if (isBetween) {
          return;
        }
      }
    }
  }

  /**
   * All distinct sets of a key's records whose times differ by {@code size} at most: a window ends with each record, and
   * one begins right behind each record that another one follows in time. The records of one time are a slice.
   */
  static final class Sliding extends SlicedWindows {
    private static final long serialVersionUID = 1L;
    private final long size;

    Sliding(String name, Aggregator aggregator, long size, Aggregates.Closing closing) {
      super(name, aggregator, size + 1, closing);
      this.size = size;
    }

    @Override
    long end(long start, long latest) {
      return start + size;
    }

    @Override
    long slice(long time) {
      return time;
    }

    @Override
    long first(long time) {
      return time - size;
    }

    @Override
    long last(long time) {
      return time;
    }

    @Override
    long lastChanged(long slice, boolean isNew) {
      // The window behind the record was not there, if its time is a new one.
      return isNew ? slice + 1 : slice;
    }

    @Override
    SortedSet<Long> starts(List<Slice> slices, long from, long to) {
      SortedSet<Long> starts = new TreeSet<>();
      for (int at = 0; at < slices.size(); at++) {
        long time = slices.get(at).start();
        if (from <= time - size && time - size <= to) {
          starts.add(time - size);
        }
        boolean isFollowed = at + 1 < slices.size() && slices.get(at + 1).start() <= time + length;
        if (isFollowed && from <= time + 1 && time + 1 <= to) {
          starts.add(time + 1);
        }
      }
      return starts;
    }

    @Override
    long[] lastSlices(long start) {
      return new long[] {start - 1};
    }

    @Override
    void noteEnds(byte[] of, long slice, long first) {
      if (onlyFinal && slice - size >= first) {
        noteEnd(of, slice - size);
      }
      noteEnd(of, slice + 1);
    }
  }

  /** What a record changes in one window: {@code former} and {@code now} are results, null for none. */
  private record Change(long start, long latest, InternalRow former, InternalRow now) {}

  /** Beginning of the slice that has a time. */
  abstract long slice(long time);

  /** Beginning of the first window that can have a time, which may be negative, or begins behind it. */
  abstract long first(long time);

  /** Beginning of the last window that can have a time. */
  abstract long last(long time);

  /** Beginning of the last window that changes with a slice, which may be a new one. */
  abstract long lastChanged(long slice, boolean isNew);

  /**
   * Beginnings of the windows that begin from the first window of a time to a time, both included, in their order.
   *
   * @param slices those from the last one before the first window to the end of the last one
   */
  abstract SortedSet<Long> starts(List<Slice> slices, long from, long to);

  /** The slices that may be there, and that no window needs once the one that begins at a time is closed. */
  abstract long[] lastSlices(long start);

  /** Notes the ends of windows that have a new slice, the first one of those that are not closed included. */
  abstract void noteEnds(byte[] of, long slice, long first);

  final void noteEnd(byte[] of, long start) {
    expireAfter(closes(start), window(of, start));
  }

  final boolean isEndNoted(byte[] of, long start) {
    return expiresAfter(closes(start), window(of, start));
  }

  /** The latest stream time at which a window that begins at a time still takes records. */
  private long closes(long start) {
    return start + length + grace - 1;
  }

  @Override
  final void add(StreamRecord record) {
    long time = timeWith(record);
    long last = last(record.time());
    if (closes(last) < time) {
      late(record, last, end(last, record.time()), closes(last));
      expire();
      return;
    }
    // The first window with the record that is not closed.
    long first = first(Math.max(record.time(), time - grace));
    long own = slice(record.time());
    byte[] at = slice(record.key(), own);
    byte[] kept = task.store().get(at);
    Slice after = new Slice(own, new Merged(with(buffer(kept), record), latest(kept, record), null));
    boolean isAsked = !onlyFinal || mayBeEarly();
    List<Change> changes = isAsked ? changes(record, first, lastChanged(own, kept == null), after) : List.of();
    observe(time);
    task.store().put(at, Rows.timed(after.content().latest(), after.content().buffer()));
    if (kept == null) {
      noteEnds(record.key(), own, first);
    }
    noteChange(record.key(), own);
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
   * Results that a record changes in the windows from one to another, with its slice as it will be. A window that cannot be
   * computed is a dead letter about it, and has no result.
   *
   * @throws EvaluationException if all windows fail that should take the record
   */
  private List<Change> changes(StreamRecord record, long first, long last, Slice own) {
    List<Slice> before = slices(record.key(), first - 1, last + length);
    List<Slice> after = with(before, own);
    Set<Long> former = onlyFinal ? Set.of() : new HashSet<>(starts(before, first, last));
    SliceStacks contents = stacks(record.key(), after);
    SliceStacks formerContents = stacks(record.key(), before);
    List<Change> changes = new ArrayList<>();
    List<Change> failed = new ArrayList<>(0);
    EvaluationException why = null;
    boolean isTaken = false;
    boolean isRefused = false;
    for (long start : starts(after, first, last)) {
      boolean takes = start <= record.time();
      Merged content = contents.content(start);
      try {
        Change change = change(record, start, former.contains(start) ? formerContents.content(start) : null, content);
        isTaken |= takes;
        if (change.now != null) {
          changes.add(change);
        }
      } catch (EvaluationException failure) {
        why = failure;
        isRefused |= takes;
        failed.add(new Change(start, content.latest(), null, null));
      }
    }
    if (isRefused && !isTaken) {
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
          wasEarly(record.key(), start) ? null : early(record, start, after.latest(), after.checked());
      return new Change(start, after.latest(), null, early);
    }
    long end = end(start, after.latest());
    InternalRow former = before == null || before.failure() != null ? null : former(start, end, before.buffer());
    return new Change(start, after.latest(), former, row(start, end, after.checked()));
  }

  /** Slices with one in the place of the one that begins at the same time, if that is there. */
  private static List<Slice> with(List<Slice> slices, Slice own) {
    List<Slice> changed = new ArrayList<>(slices);
    int at = changed.size();
    while (at > 0 && changed.get(at - 1).start() >= own.start()) {
      at--;
    }
    if (at < changed.size() && changed.get(at).start() == own.start()) {
      changed.set(at, own);
    } else {
      changed.add(at, own);
    }
    return changed;
  }

  @Override
  final void end(byte[] at) {
    // Readers of a live state see that the window is closed before its slices go.
    save();
    Keys.Reader reader = new Keys.Reader(at);
    byte[] of = reader.bytes();
    long start = reader.number();
    Merged content = onlyFinal ? ending(of, start) : null;
    boolean isRemoved = false;
    for (long each : lastSlices(start)) {
      byte[] slice = slice(of, each);
      if (task.store().get(slice) != null) {
        task.store().remove(slice);
        isRemoved = true;
      }
    }
    if (content != null) {
      close(at, content.latest(), content::checked);
    } else if (onlyFinal && !isRemoved) {
      throw new DamagedStateException("a window that ends is gone");
    }
  }

  /** The content of a window that ends; what was merged for it is kept for the windows of its key that end next. */
  private Merged ending(byte[] of, long start) {
    if (ending == null) {
      ending = new HashMap<>();
    }
    ByteBuffer key = ByteBuffer.wrap(of);
    SliceStacks stacks = ending.get(key);
    long before = stacks == null ? 0 : stacks.bytes();
    if (stacks == null) {
      stacks = stacks(of, (from, to) -> slices(of, from, to));
    }
    Merged content = stacks.content(start);
    long[] last = lastSlices(start);
    boolean isKept = !stacks.endAt(last[last.length - 1]) && endingBytes - before + stacks.bytes() <= MOST_BYTES;
    if (isKept) {
      ending.putIfAbsent(key, stacks);
    } else {
      ending.remove(key);
    }
    endingBytes += (isKept ? stacks.bytes() : 0) - before;
    endingTo = Math.max(endingTo, start + length);
    return content;
  }

  /** Has windows that end later take account of a slice with another content. */
  private void noteChange(byte[] of, long slice) {
    SliceStacks stacks = slice < endingTo ? ending.get(ByteBuffer.wrap(of)) : null;
    if (stacks != null) {
      endingBytes -= stacks.bytes();
      stacks.change(slice);
      endingBytes += stacks.bytes();
    }
  }

  /** The windows that are not closed and can be computed, as entries that {@link #shown} takes. */
  @Override
  final List<Store.Entry> states(byte[] from, byte[] to, int limit) {
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
      long first = first(slice);
      long last = last(slice + length);
      List<Slice> slices = slices(of, first - 1, last + length);
      SliceStacks contents = stacks(of, slices);
      for (long start : starts(slices, first, last)) {
        byte[] window = window(of, start);
        Merged content = Arrays.compareUnsigned(window, at) < 0 ? null : contents.content(start);
        // Looked at after the slices, which are all there as long as the window is not closed.
        if (content != null && content.failure() == null && closes(start) >= shownTime()) {
          windows.add(new Store.Entry(window, Rows.timed(content.latest(), content.buffer())));
        }
      }
      at = Keys.next(window(of, last));
    }
    return windows.subList(0, Math.min(limit, windows.size()));
  }

  /** Stacks over slices that are not looked up again. */
  private SliceStacks stacks(byte[] of, List<Slice> slices) {
    NavigableMap<Long, Slice> sorted = new TreeMap<>();
    slices.forEach(each -> sorted.put(each.start(), each));
    return stacks(of, (from, to) -> List.copyOf(sorted.subMap(from, to).values()));
  }

  private SliceStacks stacks(byte[] of, SliceStacks.Slices slices) {
    return new SliceStacks(length, Math.floorMod(Arrays.hashCode(of), length), slices, this::merge);
  }

  /** Slices of a key that begin from a time (included) to a time (excluded). */
  private List<Slice> slices(byte[] of, long from, long to) {
    List<Slice> slices = new ArrayList<>();
    for (Store.Entry each : task.store().range(slice(of, from), slice(of, to))) {
      Merged content = new Merged(buffer(each.value()), Rows.time(each.value()), null);
      slices.add(new Slice(Keys.last(each.key()), content));
    }
    return slices;
  }

  /** The merged contents of two parts, either of which may be null. */
  private Merged merge(Merged one, Merged other) {
    if (one == null || other == null) {
      return one == null ? other : one;
    }
    long latest = Math.max(one.latest(), other.latest());
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
