package jmsbridge.predicate;

import java.util.Locale;

/** A step cannot be applied to a body; the message says why. */
final class UnconvertibleBodyException extends Exception {
  /** Most bytes of a body before and after each step. */
  static final int LARGEST = 4 << 20;

  private static final long serialVersionUID = 1L;

  UnconvertibleBodyException(String why) {
    super(why, null, false, false);
  }

  /** A body has more bytes than that. */
  static UnconvertibleBodyException tooLarge() {
    return new UnconvertibleBodyException(String.format(Locale.ROOT, "it has more than %,d bytes", LARGEST));
  }
}
