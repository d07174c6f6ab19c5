package jmsbridge.streams;

import java.util.function.Supplier;

/** An expression of a node failed for a record; the message is that of the first cause. */
final class EvaluationException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /** Wraps what generated code throws: also checked exceptions, which it does not declare. */
  EvaluationException(Exception cause) {
    super(first(cause), cause);
  }

  /** The result of a computation; null if it fails, as for a former value: one that cannot be computed is no row. */
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
