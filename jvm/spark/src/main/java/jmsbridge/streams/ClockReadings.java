package jmsbridge.streams;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.LongSupplier;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * Readings of the clock by which a share judges whether a record is dated ahead of it, for each partition since the last
 * commit of the state.
 *
 * <p>A record is judged by the last reading, and the clock is read anew only for a record that this one would refuse. A
 * reading is kept only if it lets a record through, so that records near the present need one for each {@code maxAhead}.
 * Readings are committed with the positions: a run that repeats records judges them by the same readings.
 */
final class ClockReadings {
  /** Begins the text of readings: positions without it were committed by a run that judged no records. */
  private static final String MARK = "clock";
  /** A reading is moved ahead by this part of the time since the first, which bounds how many there are. */
  private static final long LEAD_PART = 8;

  private static final int CROWD = 40;

  private record Reading(long offset, long time) {}

  private static final class Judged {
    private final List<Reading> readings = new ArrayList<>();
    /** Records before this offset were judged by an earlier run. */
    private long repeatedUntil;
    private boolean wasJudging = true;
    private long last = -1;
    private boolean isLastAhead;

    /** The latest reading for a record; the smallest number if there is none. */
    private long at(long offset) {
      long time = Long.MIN_VALUE;
      for (int index = readings.size() - 1; index >= 0 && time == Long.MIN_VALUE; index--) {
        if (readings.get(index).offset <= offset) {
          time = readings.get(index).time;
        }
      }
      return time;
    }

    private boolean isAhead(long offset, long earliest, LongSupplier clock) {
      if (earliest <= at(offset)) {
        return false;
      }
      if (offset < repeatedUntil) {
        return wasJudging;
      }
      long now = clock.getAsLong();
      if (earliest > now) {
        return true;
      }
      long since = readings.isEmpty() ? 0 : now - readings.get(0).time;
      readings.add(new Reading(offset, now + Math.max(0, since / LEAD_PART)));
      return false;
    }
  }

  private final LongSupplier clock;
  private final Map<TopicPartition, Judged> byPartition = new HashMap<>();

  /** Creates readings of a clock, which gives milliseconds since 1970. */
  ClockReadings(LongSupplier clock) {
    this.clock = clock;
  }

  /** Whether a partition has so many readings that little else has room beside its position. */
  boolean isCrowded() {
    return byPartition.values().stream().anyMatch(each -> each.readings.size() > CROWD);
  }

  /** Forgets all readings: the state has been committed. */
  void begin() {
    byPartition.clear();
  }

  /** Takes over the readings that an earlier run has committed with a position, before which it had judged all records. */
  void repeat(TopicPartition of, long position, String committed) {
    Judged judged = of(of);
    judged.repeatedUntil = position;
    String[] parts = committed.split(" ");
    judged.wasJudging = parts[0].equals(MARK);
    for (int index = 1; judged.wasJudging && index < parts.length; index++) {
      String[] reading = parts[index].split(":");
      judged.readings.add(new Reading(number(reading[0]), number(reading[1])));
    }
  }

  /** Whether a record is later than the clock by more than some milliseconds; below 0: no record is. */
  boolean isAhead(ConsumerRecord<?, ?> record, long maxAhead) {
    if (maxAhead < 0 || record.timestamp() < 0) {
      return false;
    }
    Judged judged = of(new TopicPartition(record.topic(), record.partition()));
    if (judged.last != record.offset()) {
      judged.last = record.offset();
      judged.isLastAhead = judged.isAhead(record.offset(), record.timestamp() - maxAhead, clock);
    }
    return judged.isLastAhead;
  }

  /** The readings of a partition, to be committed with its position; empty if none of its records was judged. */
  String committed(TopicPartition of) {
    Judged judged = byPartition.get(of);
    if (judged == null || judged.last < 0) {
      return "";
    }
    StringBuilder text = new StringBuilder(MARK);
    for (Reading reading : judged.readings) {
      text.append(' ').append(text(reading.offset)).append(':').append(text(reading.time));
    }
    return text.toString();
  }

  private Judged of(TopicPartition partition) {
    return byPartition.computeIfAbsent(partition, any -> new Judged());
  }

  private static String text(long number) {
    return Long.toString(number, Character.MAX_RADIX);
  }

  private static long number(String text) {
    return Long.parseLong(text, Character.MAX_RADIX);
  }
}
