package jmsbridge.streams;

/** The process of the Python functions has ended before its answer, most likely because of a record of the request. */
final class PythonEndedException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  PythonEndedException(String message) {
    super(message);
  }
}
