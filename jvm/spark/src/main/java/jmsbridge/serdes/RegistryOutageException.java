package jmsbridge.serdes;

/** A schema registry cannot be reached: the same request may succeed later. */
public final class RegistryOutageException extends RegistryException {
  private static final long serialVersionUID = 1L;

  RegistryOutageException(String message, Exception cause) {
    super(message, cause);
  }
}
