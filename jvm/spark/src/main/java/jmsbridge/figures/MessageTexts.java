package jmsbridge.figures;

/** Texts of a row's message, which are looked for only when they are needed; each may be null. */
public interface MessageTexts {
  /** Id of the message. */
  String id();

  /** Destination of the message. */
  String destination();
}
