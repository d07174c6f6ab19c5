package jmsbridge.serdes;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;

/**
 * Schema that a route names: of a file, or a version of a subject of the registry.
 *
 * @param type name of the format in a registry
 * @param name the schema as the configuration spells it
 * @param schema the schema itself
 * @param id its id in the registry; 0: it has none
 * @param message full name of a Protobuf message; empty: the first one of the schema
 * @param isXml whether bodies that are written by it were XML, all of whose values are texts
 */
public record NamedSchema(String type, String name, SchemaText schema, int id, String message, boolean isXml)
    implements Serializable {
  /**
   * The schema that Python's JSON describes ({@code engine/schemas/schema_json.py}).
   *
   * @param registry null: there is no registry
   */
  public static NamedSchema find(JsonNode given, SchemaRegistry registry) {
    String type = given.get("type").asText();
    String name = given.get("name").asText();
    String message = given.get("message").asText();
    boolean isXml = given.path("xml").asBoolean();
    boolean isRegistered = !given.hasNonNull("text") || given.hasNonNull("subjects");
    if (registry == null && isRegistered) {
      throw new IllegalArgumentException("the schema %s needs schema.registry.url".formatted(name));
    }
    if (!given.hasNonNull("text")) {
      SchemaRegistry.Version version =
          registry.version(type, given.get("subject").asText(), given.get("version").asInt());
      return new NamedSchema(type, name, version.schema(), version.id(), message, isXml);
    }
    String text = given.get("text").asText();
    SchemaText schema = Formats.of(type, message).schema(text);
    if (!given.hasNonNull("subjects")) {
      return new NamedSchema(type, name, schema, 0, message, isXml);
    }
    String subject = subject(given.get("subjects").asText(), given.get("topic").asText(), type, schema, message);
    return new NamedSchema(type, name, schema, registry.register(type, subject, schema), message, isXml);
  }

  /** Subject by one of Confluent's strategies. */
  private static String subject(String strategy, String topic, String type, SchemaText schema, String message) {
    return switch (strategy) {
      case "topic" -> Role.VALUE.subject(topic);
      case "record" -> recordName(type, schema, message);
      case "topic-record" -> topic + "-" + recordName(type, schema, message);
      default -> throw new IllegalArgumentException("no strategy " + strategy);
    };
  }

  private static String recordName(String type, SchemaText schema, String message) {
    return switch (type) {
      case "AVRO" -> AvroFormat.parsed(schema).getFullName();
      case "PROTOBUF" -> new ProtobufFormat(message).descriptor(schema).getFullName();
      default -> JsonSchemas.title(schema);
    };
  }
}
