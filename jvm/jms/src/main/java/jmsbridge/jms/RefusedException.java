package jmsbridge.jms;

/** Settings with which no attempt can succeed; the text is for users. */
public final class RefusedException extends Exception {
  private static final long serialVersionUID = 1L;

  /** With a line for users. */
  public RefusedException(String why) {
    super(why);
  }
}
