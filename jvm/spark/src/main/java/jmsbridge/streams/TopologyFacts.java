package jmsbridge.streams;

/** What the nodes of a topology need to know about it. */
interface TopologyFacts {
  String name();

  /** What happens with a record that a node cannot process. */
  FailurePolicy policy();

  /** Topic of the dead letters. */
  String deadLetters();

  /** Whether a topic is one of the topology's own, between two of its nodes. */
  boolean isInternal(String topic);
}
