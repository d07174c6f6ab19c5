package jmsbridge.serdes;

/** A value does not fit its serde: the record is at fault, and a second try would end alike. */
public final class UnfitValueException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  public UnfitValueException(String message) {
    super(message);
  }

  /** Wraps the failure of a library, whose first line says what is wrong. */
  static UnfitValueException of(String fault, Exception failure) {
    String text = String.valueOf(failure.getMessage()).lines().findFirst().orElse("");
    String kind = failure.getClass().getSimpleName();
    boolean isTold = failure.getMessage() != null && !text.isBlank();
    return new UnfitValueException(isTold ? "%s: %s".formatted(fault, text) : "%s (%s)".formatted(fault, kind));
  }
}
