package jmsbridge.streams;

import java.io.Serializable;

/** Beginnings and ends of windows, in milliseconds since 1970; ends are excluded. Records have times from 0 on. */
interface WindowGrid extends Serializable {
  /** Beginning of the first window that has a time. */
  long first(long time);

  /** Beginning of the window after the one that begins at a time. */
  long next(long start);

  /** End of the window that begins at a time. */
  long end(long start);

  /** Beginning of a piece of time around a time, all of which is in the same windows. */
  long piece(long time);

  /** Windows of one size that begin at multiples of {@code advance}; none begins before 1970, as in Kafka Streams. */
  record Multiples(long size, long advance) implements WindowGrid {
    @Override
    public long first(long time) {
      return Math.max(0, (Math.floorDiv(time - size, advance) + 1) * advance);
    }

    @Override
    public long next(long start) {
      return start + advance;
    }

    @Override
    public long end(long start) {
      return start + size;
    }

    @Override
    public long piece(long time) {
      long length = size;
      for (long rest = advance; rest != 0; ) {
        long left = length % rest;
        length = rest;
        rest = left;
      }
      return time - Math.floorMod(time, length);
    }
  }
}
