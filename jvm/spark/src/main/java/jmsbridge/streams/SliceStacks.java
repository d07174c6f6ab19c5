package jmsbridge.streams;

import java.util.ArrayList;
import java.util.List;
import java.util.function.BinaryOperator;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;

/**
 * Contents of the windows of one key and one length, merged of slices: of those before a boundary from the last one to the
 * first, and of those behind it from the first one to the last.
 *
 * <p>Windows that are asked for one after the other share what was merged, so that each takes a few merges, however many
 * slices it has: "two stacks" (Tangwongsan, Hirzel, Schneider: Low-Latency Sliding-Window Aggregation in Worst-Case
 * Constant Time, DEBS 2017). A window has one boundary, which follows from its beginning. So its slices are merged in the
 * same order, whatever has been asked before.
 */
final class SliceStacks {
  /** Bytes that the JVM takes for a merged content beside its buffer. */
  private static final int ENTRY_BYTES = 150;
  /** Bytes that the JVM takes for stacks without slices and their key. */
  private static final int EMPTY_BYTES = 400;

  /** Buffer of slices that follow one another, or why they have none, and the time of their latest record. */
  record Merged(UnsafeRow buffer, long latest, EvaluationException failure) {
    /** The buffer; EvaluationException if there is none. */
    UnsafeRow checked() {
      if (failure != null) {
        throw failure;
      }
      return buffer;
    }

    private int bytes() {
      return ENTRY_BYTES + (buffer == null ? 0 : buffer.getSizeInBytes());
    }
  }

  /** Content from a time on. */
  record Slice(long start, Merged content) {}

  /** The slices of the key, in the order of their beginnings. */
  interface Slices {
    /** The slices that begin from a time (included) to a time (excluded). */
    List<Slice> between(long from, long to);
  }

  private final long length;
  private final long shift;
  private final Slices slices;
  private final BinaryOperator<Merged> merge;
  private long boundary = Long.MIN_VALUE;
  /** Slices before the boundary, each merged with those between; the last one begins first. */
  private final List<Slice> front = new ArrayList<>();
  /** Slices from here to the boundary are in {@link #front}. */
  private long frontFrom;
  /** Slices from the boundary on, each merged with those between. */
  private final List<Slice> back = new ArrayList<>();
  /** Slices from the boundary to here are in {@link #back}. */
  private long backTo;
  private long bytes = EMPTY_BYTES;

  /**
   * Creates the stacks of windows of a length in milliseconds.
   *
   * @param shift distance of the boundaries from multiples of the length: those of many keys do not have to meet
   */
  SliceStacks(long length, long shift, Slices slices, BinaryOperator<Merged> merge) {
    this.length = length;
    this.shift = shift;
    this.slices = slices;
    this.merge = merge;
  }

  /** Bytes that this takes in memory. */
  long bytes() {
    return bytes;
  }

  /** Whether no slice begins behind a time, among those that were read. */
  boolean endAt(long time) {
    List<Slice> last = back.isEmpty() ? front : back;
    return last.isEmpty() || last.get(last == back ? back.size() - 1 : 0).start <= time;
  }

  /** The content of the window that begins at a time; null without slices. */
  Merged content(long start) {
    turn(start + Math.floorMod(shift - start, length));
    begin(start);
    end(start + length);
    return merge.apply(top(front), top(back));
  }

  /** Takes note that a slice has another content now. */
  void change(long slice) {
    if (slice < boundary) {
      while (!front.isEmpty() && front.get(front.size() - 1).start <= slice) {
        pop(front);
      }
      frontFrom = Math.max(frontFrom, slice + 1);
    } else {
      while (!back.isEmpty() && back.get(back.size() - 1).start >= slice) {
        pop(back);
      }
      backTo = Math.min(backTo, slice);
    }
  }

  private void turn(long to) {
    if (to != boundary) {
      front.clear();
      back.clear();
      bytes = EMPTY_BYTES;
      boundary = to;
      frontFrom = to;
      backTo = to;
    }
  }

  private void begin(long start) {
    while (!front.isEmpty() && front.get(front.size() - 1).start < start) {
      pop(front);
    }
    if (start < frontFrom) {
      List<Slice> earlier = slices.between(start, frontFrom);
      for (int at = earlier.size() - 1; at >= 0; at--) {
        Slice each = earlier.get(at);
        push(front, each.start, merge.apply(each.content, top(front)));
      }
    }
    frontFrom = start;
  }

  private void end(long end) {
    while (!back.isEmpty() && back.get(back.size() - 1).start >= end) {
      pop(back);
    }
    if (backTo < end) {
      for (Slice each : slices.between(backTo, end)) {
        push(back, each.start, merge.apply(top(back), each.content));
      }
    }
    backTo = end;
  }

  private void push(List<Slice> stack, long start, Merged content) {
    stack.add(new Slice(start, content));
    bytes += content.bytes();
  }

  private void pop(List<Slice> stack) {
    bytes -= stack.remove(stack.size() - 1).content.bytes();
  }

  private static Merged top(List<Slice> stack) {
    return stack.isEmpty() ? null : stack.get(stack.size() - 1).content;
  }
}
