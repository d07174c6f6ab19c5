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
 */
public record NamedSchema(String type, String name, SchemaText schema, int id, String message)
    implements Serializable {
  private static final String JSON = "JSON";

  /**
   * The schema that Python's JSON describes ({@code routes/schema_names.py}).
   *
   * @param registry null: there is no registry
   */
  public static NamedSchema find(JsonNode given, SchemaRegistry registry) {
    String type = given.get("type").asText();
    String name = given.get("name").asText();
    String message = given.get("message").asText();
    if (!given.hasNonNull("text")) {
      SchemaRegistry.Version found =
          registry.version(type, given.get("subject").asText(), given.get("version").asInt());
      return new NamedSchema(type, name, found.schema(), found.id(), message);
    }
    String text = given.get("text").asText();
    SchemaText schema =
        type.equals(JSON) ? JsonSchemas.schema(text) : Formats.of(type, message).schema(text);
    String subject = given.path("subject").asText("");
    return new NamedSchema(
        type, name, schema, subject.isEmpty() ? 0 : registry.register(type, subject, schema), message);
  }

  /** Full name of the record or message, which strategies for names of subjects use. */
  public String recordName() {
    return switch (type) {
      case "AVRO" -> AvroFormat.parsed(schema).getFullName();
      case "PROTOBUF" -> new ProtobufFormat(message).descriptor(schema).getFullName();
      default -> JsonSchemas.title(schema);
    };
  }
}
