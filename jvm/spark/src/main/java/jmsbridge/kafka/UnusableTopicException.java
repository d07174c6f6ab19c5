package jmsbridge.kafka;

/** A topic that a program cannot do without takes no records; the message names the topic and the cause. */
public final class UnusableTopicException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  public UnusableTopicException(String trouble) {
    super(trouble);
  }
}
