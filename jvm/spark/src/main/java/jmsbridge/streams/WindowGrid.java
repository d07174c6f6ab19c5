package jmsbridge.streams;

import java.io.Serializable;

/** Beginnings and ends of windows, in milliseconds since 1970; ends are excluded. Records have times from 0 on. */
interface WindowGrid extends Serializable {
  /** Beginning of the last window that has a time. */
  long start(long time);

  /** End of the window that begins at a time. */
  long end(long start);

  /** Beginning of the slice that has a time, all of which is in the same windows. */
  long slice(long time);

  /** Windows of one size that begin at multiples of {@code advance}; none begins before 1970, as in Kafka Streams. */
  record Multiples(long size, long advance) implements WindowGrid {
    @Override
    public long start(long time) {
      return time - time % advance;
    }

    /** Beginning of the first window that ends behind a time, which may be negative. */
    long first(long time) {
      return Math.max(0, (Math.floorDiv(time - size, advance) + 1) * advance);
    }

    // Slices are cut where windows begin and where they end, so there are one or two in each advance.
    @Override
    public long slice(long time) {
      long start = start(time);
      long cut = start + size % advance;
      return time < cut ? start : cut;
    }

    @Override
    public long end(long start) {
      return start + size;
    }
  }
}
