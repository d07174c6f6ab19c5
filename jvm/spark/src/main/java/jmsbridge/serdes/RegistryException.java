package jmsbridge.serdes;

/** A schema registry refuses a request; no record is at fault, and a second try would end alike. */
public class RegistryException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  RegistryException(String message, Exception cause) {
    super(message, cause);
  }
}
