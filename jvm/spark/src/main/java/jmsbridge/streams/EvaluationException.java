package jmsbridge.streams;

/** An expression of a node failed for a record; the message is that of the first cause. */
class EvaluationException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /** Wraps what generated code throws: also checked exceptions, which it does not declare. */
  EvaluationException(Exception cause) {
    super(first(cause), cause);
  }

  /** Stands for an expression whose value, or code, is nested too deeply for the stack of a thread. */
  EvaluationException(StackOverflowError deep) {
    super("a value is nested too deeply", deep);
  }

  private static String first(Throwable failure) {
    Throwable first = failure;
    while (first.getCause() != null) {
      first = first.getCause();
    }
    return String.valueOf(first.getMessage()).lines().findFirst().orElse(first.getClass().getSimpleName());
  }
}
