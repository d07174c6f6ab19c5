package jmsbridge.streams;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.stream.Collectors;

/**
 * What the clock has made due since the state was committed, in the order of time: committed with the outputs, as text
 * beside a position, so that a second run repeats it between the same records.
 */
final class Ticks {
  /** In place of an offset: the tick is at the end of a batch, whose range tells it. */
  static final long END = Long.MAX_VALUE;
  /** Kafka keeps 4096 bytes beside a position, and a tick takes 25 at most; {@link ClockReadings} take others. */
  private static final int MOST = 120;
  private static final String BEGIN = "ticks ";
  private static final int RADIX = 36;

  /** A time of the clock up to which all was done, and the offset of the next record of the share then. */
  record Tick(long offset, long clock) {
    private String text() {
      return Long.toString(offset, RADIX) + "@" + Long.toString(clock, RADIX);
    }

    private static Tick read(String text) {
      String[] parts = text.split("@");
      return new Tick(Long.parseLong(parts[0], RADIX), Long.parseLong(parts[1], RADIX));
    }
  }

  private final Deque<Tick> list = new ArrayDeque<>();

  /** Reads the text beside a position, which may be of others. */
  static Ticks read(String text) {
    Ticks ticks = new Ticks();
    if (text.startsWith(BEGIN)) {
      for (String tick : text.substring(BEGIN.length()).split(" ")) {
        ticks.list.add(Tick.read(tick));
      }
    }
    return ticks;
  }

  String text() {
    return list.isEmpty() ? "" : list.stream().map(Tick::text).collect(Collectors.joining(" ", BEGIN, ""));
  }

  boolean isFull() {
    return list.size() >= MOST;
  }

  /** The latest time; {@link Positions#NEVER}: none. */
  long latest() {
    return list.isEmpty() ? Positions.NEVER : list.getLast().clock();
  }

  void add(Tick tick) {
    list.add(tick);
  }

  void clear() {
    list.clear();
  }

  /** Those in real time that are later than a time. */
  Deque<Tick> after(long clock) {
    return list.stream().filter(each -> each.clock() > clock && each.offset() != END)
        .collect(Collectors.toCollection(ArrayDeque::new));
  }
}
