package jmsbridge.serdes;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.HashMap;

/** Maker of readers that know the schemas of sources. */
public final class SourceSchemas {
  private SourceSchemas() {}

  /**
   * The reader for a registry, and for the sources that the JSON of {@code engine/schemas/schema_json.py} describes.
   *
   * @param registry null: there is no registry
   */
  public static Documents documents(SchemaRegistry registry, String json) {
    HashMap<String, SourceSchema> schemas = new HashMap<>();
    try {
      new ObjectMapper().readTree(json).properties()
          .forEach(each -> schemas.put(each.getKey(), find(each.getKey(), each.getValue(), registry)));
    } catch (JsonProcessingException error) {
      throw new IllegalArgumentException(error);
    }
    return new Documents(registry, schemas);
  }

  private static SourceSchema find(String source, JsonNode given, SchemaRegistry registry) {
    String words = "the schema %s of the source %s".formatted(given.get("name").asText(), source);
    try {
      NamedSchema schema = NamedSchema.find(given, registry);
      SchemaRegistry.Typed typed = new SchemaRegistry.Typed(schema.type(), schema.schema());
      SourceSchema parsed = new SourceSchema(words, typed, schema.message(), given.get("takesText").asBoolean());
      parsed.writer();
      return parsed;
    } catch (IllegalArgumentException failure) {
      throw new IllegalArgumentException("%s cannot be used: %s".formatted(words, failure.getMessage()), failure);
    }
  }
}
