package jmsbridge;

/** Limits of what one record may take, beside those of the serdes' libraries. Python's are in `engine/limits.py`. */
public final class Limits {
  /** Items of the arrays and maps in an Avro value, beyond one for each of its bytes: items can have none. */
  public static final int MOST_EMPTY_ITEMS = 10_000;
  /** Bytes of values that are sent to a Python function at once, beside those of the last record. */
  public static final int BATCH_BYTES = 16 << 20;
  /** Bytes of a part of its answer; the other side sends {@code RESULT_BYTES} at most, and what Arrow adds. */
  public static final int MOST_ANSWER_BYTES = 64 << 20;

  private Limits() {}
}
