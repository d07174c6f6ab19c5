package jmsbridge.serdes;

/** Encoder of JSON bodies into values with a schema. {@code engine/schemas/encoders.py} is the same in Python. */
@FunctionalInterface
public interface BodyEncoder {
  /**
   * The value without the schema's number: what follows the first five bytes of Confluent's wire format.
   *
   * @param fromXml the JSON was made of XML, so that its scalars are texts and its lists may be single values
   * @throws UnfitValueException the body does not fit, with the reason
   */
  byte[] encode(byte[] json, boolean fromXml);

  /**
   * The encoder of a schema.
   *
   * @param type name of the format in a registry
   * @param message full name of a message of Protobuf; empty: the first one of the schema
   * @throws IllegalArgumentException the schema cannot be used
   */
  static BodyEncoder of(String type, SchemaText schema, String message) {
    return switch (type) {
      case "AVRO" -> new AvroBodies(schema)::encode;
      case "PROTOBUF" -> new ProtobufBodies(schema, message)::encode;
      default -> throw new IllegalArgumentException("bodies cannot be encoded with a schema of " + type);
    };
  }
}
