package jmsbridge.streams;

/** An entry of a topology's state is not as a node has written it. */
final class DamagedStateException extends IllegalStateException {
  private static final long serialVersionUID = 1L;

  DamagedStateException(String reason) {
    super("the state of the topology is damaged (%s): restore the folder of its state from a backup, or throw it away with"
        .formatted(reason) + " `jms-bridge topology reset` and read the topics from their beginning again");
  }
}
