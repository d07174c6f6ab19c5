package jmsbridge.serdes;

/** Part of a record that a schema is for. */
enum Role {
  KEY("Key", "-key"),
  VALUE("Value", "-value");

  private final String recordName;
  private final String suffix;

  Role(String recordName, String suffix) {
    this.recordName = recordName;
    this.suffix = suffix;
  }

  /** Name of a record whose schema is made from its fields. */
  String recordName() {
    return recordName;
  }

  /** Subject of a topic by Confluent's TopicNameStrategy. */
  String subject(String topic) {
    return topic + suffix;
  }
}
