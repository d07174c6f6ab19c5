package jmsbridge.streams;

import java.util.Arrays;
import org.apache.kafka.common.errors.InterruptException;

/** How far the shares of a run have come that write to internal topics: the time up to which Kafka has their records. */
final class Pace {
  private final long[] batches;
  private final long[] times;

  /** Creates the pace of so many shares, none of which has begun. */
  Pace(int shares) {
    batches = new long[shares];
    times = new long[shares];
    Arrays.fill(batches, -1);
    Arrays.fill(times, Long.MIN_VALUE);
  }

  /** Begins a batch of a share; until it says more, the other shares wait for it. */
  synchronized void begin(int share, long batch) {
    if (share < times.length) {
      batches[share] = batch;
      times[share] = Long.MIN_VALUE;
      notifyAll();
    }
  }

  /** Says that Kafka has all records that a share writes before it comes to a time; the greatest: it has no more. */
  synchronized void reached(int share, long time) {
    if (share < times.length) {
      times[share] = time;
      notifyAll();
    }
  }

  /** The least time that the shares have reached in a batch. */
  synchronized long least(long batch) {
    long least = Long.MAX_VALUE;
    for (int share = 0; share < times.length; share++) {
      if (batches[share] <= batch) {
        least = Math.min(least, batches[share] == batch ? times[share] : Long.MIN_VALUE);
      }
    }
    return least;
  }

  /** Waits for news of the shares, at most so long; InterruptException if the thread is interrupted. */
  synchronized void await(long limitMs) {
    try {
      wait(limitMs);
    } catch (InterruptedException interrupted) {
      throw new InterruptException(interrupted);
    }
  }
}
