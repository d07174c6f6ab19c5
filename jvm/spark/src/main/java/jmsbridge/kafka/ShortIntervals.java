package jmsbridge.kafka;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Short first intervals of real-time mode, by which Java compiles the code that runs at a boundary between two intervals.
 *
 * <p>No record is processed at a boundary. The first ones of a JVM take several times as long as later ones, and at the
 * usual length of intervals they would be spread over its first half hour. State is static, since compiled code stays
 * when another query starts in the JVM.
 */
public final class ShortIntervals {
  private static final int COUNT = 12;
  private static final long LENGTH_NANOS = TimeUnit.MILLISECONDS.toNanos(400);
  private static final AtomicInteger COMMITTED = new AtomicInteger();

  private ShortIntervals() {}

  /** Length in nanoseconds of the interval that begins now, if it is to be a short one; otherwise the greatest long. */
  public static long nanos() {
    return COMMITTED.get() < COUNT ? LENGTH_NANOS : Long.MAX_VALUE;
  }

  /** Counts an interval that has been committed. */
  public static void commit() {
    COMMITTED.incrementAndGet();
  }

  /** Makes the next intervals short ones again. For tests, whose queries share one JVM. */
  public static void reset() {
    COMMITTED.set(0);
  }
}
