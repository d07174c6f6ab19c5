package jmsbridge.streams;

import java.time.Instant;
import java.util.function.Supplier;

/** A node cannot process a record, mostly since an expression failed; the message is that of the first cause. */
class EvaluationException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final String reason;

  /** Wraps what generated code throws: also checked exceptions, which it does not declare. */
  EvaluationException(Exception cause) {
    super(first(cause), cause);
    reason = "function";
  }

  private EvaluationException(String reason, String message) {
    super(message);
    this.reason = reason;
  }

  /** The failure of a node that needs the times of records for a record without one. */
  static EvaluationException noTime() {
    return new EvaluationException(
        "timestamp", "the record has no time: its timestamp in Kafka is less than 0, and the node needs one");
  }

  /** The failure of a source for a record that is later than the clock by more than {@code maxAhead} milliseconds. */
  static EvaluationException ahead(long time, long maxAhead) {
    return new EvaluationException("future", ("the record's time, %s, is later than the clock by more than %d ms: correct the"
        + " clock of its producer, or max_ahead").formatted(Instant.ofEpochMilli(time), maxAhead));
  }

  /** The failure of a node for a record that came some milliseconds of stream time after its last window had closed. */
  static EvaluationException late(long lateness) {
    return new EvaluationException("late", "the record is late by %d ms: a grace longer by that would take it".formatted(lateness));
  }

  /**
   * The part of the record that is at fault: {@code timestamp}, {@code future} for a time that is ahead of the clock,
   * {@code late} for one that has passed, or {@code function} for an expression.
   */
  String reason() {
    return reason;
  }

  /** Stands for an expression whose value, or code, is nested too deeply for the stack of a thread. */
  EvaluationException(StackOverflowError deep) {
    super("a value is nested too deeply", deep);
    reason = "function";
  }

  /** The result of a computation; null if it fails, as for a former value: one that cannot be computed is not a row. */
  static <T> T orNull(Supplier<T> computation) {
    try {
      return computation.get();
    } catch (EvaluationException failure) {
      return null;
    }
  }

  private static String first(Throwable failure) {
    Throwable first = failure;
    while (first.getCause() != null) {
      first = first.getCause();
    }
    return String.valueOf(first.getMessage()).lines().findFirst().orElse(first.getClass().getSimpleName());
  }
}
