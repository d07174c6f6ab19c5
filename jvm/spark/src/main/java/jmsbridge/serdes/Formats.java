package jmsbridge.serdes;

/** The formats of values with a schema. */
final class Formats {
  private Formats() {}

  /** The format of that name; {@code message} is the message in a schema that has several. */
  static Format of(String name, String message) {
    return switch (name) {
      case "AVRO" -> new AvroFormat();
      case "PROTOBUF" -> new ProtobufFormat(message);
      case "JSON" -> new JsonFormat();
      default -> throw new IllegalArgumentException("there is no format '%s'".formatted(name));
    };
  }
}
