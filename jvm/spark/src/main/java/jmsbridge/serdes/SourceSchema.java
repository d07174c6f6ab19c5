package jmsbridge.serdes;

import java.io.Serializable;

/**
 * Schema of the bare values that a source receives.
 *
 * @param words the schema as sentences name it
 * @param typed the schema, of Avro or Protobuf
 * @param message full name of a Protobuf message; empty: the first one of the schema
 * @param takesText whether texts are such values as well, since the source's system does not tell them from bytes
 */
record SourceSchema(String words, SchemaRegistry.Typed typed, String message, boolean takesText)
    implements Serializable {
  /** Whether a body of this kind is such a value: maps, streams and objects are JSON of the bridge itself. */
  boolean has(String kind) {
    return switch (kind) {
      case "text" -> takesText;
      case "map", "stream", "object" -> false;
      default -> true;
    };
  }

  WriterSchema writer() {
    DocumentReader reader = typed.type().equals("AVRO")
        ? new AvroDocuments(typed.schema())
        : ProtobufDocuments.bare(typed.schema(), message);
    return new WriterSchema(words, typed, reader, 0);
  }
}
