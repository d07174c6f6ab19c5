package jmsbridge.streams;

/** What happens with a record that cannot be read, or for which an expression fails. */
public enum FailurePolicy {
  /** It goes to the dead-letter topic, with the reason in headers. */
  DEAD_LETTER,
  /** It is counted and passed over. */
  SKIP,
  /** The topology ends with an error. */
  STOP
}
