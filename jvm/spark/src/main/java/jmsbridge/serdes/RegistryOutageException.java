package jmsbridge.serdes;

/** A schema registry cannot be reached: the same request may succeed later. */
public final class RegistryOutageException extends RegistryException {
  private static final long serialVersionUID = 1L;

  RegistryOutageException(String message, Exception cause) {
    super(message, cause);
  }

  /** Returns the text of the first cause of a failure. */
  static String cause(Throwable failure) {
    Throwable first = failure;
    while (first.getCause() != null) {
      first = first.getCause();
    }
    return first.getMessage() == null ? first.getClass().getSimpleName() : first.getMessage();
  }
}
