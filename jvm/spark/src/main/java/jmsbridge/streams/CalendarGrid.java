package jmsbridge.streams;

import java.time.Instant;
import java.time.LocalDate;
import java.time.ZoneId;
import java.time.temporal.ChronoUnit;

/**
 * Windows of whole days, weeks, months or years in a time zone, each of which begins where the one before it ends.
 *
 * <p>A window begins at midnight of its first day, later by an offset of local time. A beginning that the clocks skip is
 * moved by the time skipped, and one that occurs twice is the first of the two. Days and months are counted from 1 January
 * 1970, weeks from the Monday before it.
 */
final class CalendarGrid implements WindowGrid {
  private static final long serialVersionUID = 1L;
  private static final LocalDate EPOCH = LocalDate.EPOCH;
  private static final LocalDate MONDAY = LocalDate.of(1969, 12, 29);

  private final ChronoUnit unit;
  private final int count;
  private final ZoneId zone;
  private final long offsetMs;
  /** The window of the latest question, because most records are of the same one as the record before them. */
  private long lastStart;
  private long lastEnd;

  /** Windows of {@code count} units, the name of a {@link ChronoUnit}; the offset may be negative. */
  CalendarGrid(String unit, int count, String zone, long offsetMs) {
    this.unit = ChronoUnit.valueOf(unit);
    this.count = count;
    this.zone = ZoneId.of(zone);
    this.offsetMs = offsetMs;
  }

  @Override
  public long start(long time) {
    find(time);
    return lastStart;
  }

  @Override
  public long end(long start) {
    find(start);
    return lastEnd;
  }

  @Override
  public long slice(long time) {
    return start(time);
  }

  private void find(long time) {
    if (time >= lastStart && time < lastEnd) {
      return;
    }
    LocalDate date = Instant.ofEpochMilli(time).atZone(zone).toLocalDateTime().minus(offsetMs, ChronoUnit.MILLIS)
        .toLocalDate();
    long number = Math.floorDiv(unit.between(origin(), firstOf(date)), (long) count);
    // Where clocks are changed, local time does not always tell the window.
    while (beginning(number) > time) {
      number--;
    }
    while (beginning(number + 1) <= time) {
      number++;
    }
    lastStart = beginning(number);
    lastEnd = beginning(number + 1);
  }

  private LocalDate origin() {
    return unit == ChronoUnit.WEEKS ? MONDAY : EPOCH;
  }

  /** First day of the unit of a date; from there on, whole units can be counted in both directions. */
  private LocalDate firstOf(LocalDate date) {
    return switch (unit) {
      case WEEKS -> date.minusDays(date.getDayOfWeek().getValue() - 1L);
      case MONTHS -> date.withDayOfMonth(1);
      case YEARS -> date.withDayOfYear(1);
      default -> date;
    };
  }

  private long beginning(long number) {
    return origin().plus(number * count, unit).atStartOfDay().plus(offsetMs, ChronoUnit.MILLIS).atZone(zone).toInstant()
        .toEpochMilli();
  }
}
