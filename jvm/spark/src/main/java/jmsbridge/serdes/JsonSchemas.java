package jmsbridge.serdes;

import com.fasterxml.jackson.core.JacksonException;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.networknt.schema.Error;
import com.networknt.schema.InputFormat;
import com.networknt.schema.Schema;
import com.networknt.schema.SchemaException;
import com.networknt.schema.SchemaRegistryConfig;
import com.networknt.schema.SpecificationVersion;
import com.networknt.schema.path.NodePath;
import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.regex.Pattern;

/**
 * Check of JSON against a JSON Schema, by the library networknt. {@code engine/schemas/validator.py} checks alike.
 *
 * <p>Nothing is loaded from elsewhere: a reference leads into the schema itself, or to one that the registry gives with
 * it. Formats are notes, as the specification has it by default.
 */
final class JsonSchemas implements BodyCheck {
  private static final int MOST_FAULTS = 3;
  private static final int MOST_DIGITS = 1_000;
  private static final Pattern PLAIN = Pattern.compile("[A-Za-z_][A-Za-z0-9_]*");
  private static final ObjectMapper JSON = JsonMapper.builder()
      .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
      .enable(DeserializationFeature.USE_BIG_INTEGER_FOR_INTS)
      .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
      .build();

  static {
    JSON.getFactory().setStreamReadConstraints(StreamReadConstraints.builder()
        .maxNestingDepth(Document.DEPTH).maxNumberLength(MOST_DIGITS).maxStringLength(Document.MOST_BYTES).build());
  }

  private final Schema schema;
  private final Documents documents;
  private final String name;

  /** Check by a schema, whose name is as the configuration spells it. */
  JsonSchemas(SchemaText schema, String name, Documents documents) {
    this.schema = parsed(schema);
    this.name = name;
    this.documents = documents;
  }

  /** The schema that a user has given; IllegalArgumentException for any other text. */
  static SchemaText schema(String text) {
    SchemaText schema = new SchemaText(text, List.of());
    parsed(schema);
    return schema;
  }

  static String title(SchemaText schema) {
    try {
      return JSON.readTree(schema.text()).path("title").asText("");
    } catch (JacksonException failure) {
      throw new IllegalArgumentException("the text is not a JSON Schema: " + failure.getOriginalMessage(), failure);
    }
  }

  private static Schema parsed(SchemaText text) {
    Map<String, String> others = new HashMap<>();
    collect(text.references(), others);
    SchemaRegistryConfig settings = SchemaRegistryConfig.builder().formatAssertionsEnabled(false).build();
    try {
      Schema schema = com.networknt.schema.SchemaRegistry
          .withDefaultDialect(SpecificationVersion.DRAFT_2020_12, builder -> builder
              .schemaRegistryConfig(settings)
              .schemas(others)
              .schemaLoader(loader -> loader.fetchRemoteResources(false)))
          .getSchema(text.text(), InputFormat.JSON);
      schema.initializeValidators();
      return schema;
    } catch (SchemaException | IllegalArgumentException failure) {
      throw new IllegalArgumentException("the JSON Schema cannot be used: " + failure.getMessage(), failure);
    }
  }

  private static void collect(List<SchemaText.Reference> references, Map<String, String> found) {
    for (SchemaText.Reference each : references) {
      found.put(each.name(), each.schema().text());
      collect(each.schema().references(), found);
    }
  }

  @Override
  public String fault(byte[] body, BodyOrigin origin) {
    try {
      boolean hasSchema = documents != null && documents.haveSchema(body, origin);
      return faultOf(hasSchema ? documents.read(body, origin).json() : body);
    } catch (UnfitValueException unreadable) {
      return unreadable.getMessage();
    }
  }

  /** The reason why a JSON text does not fit; null if it does. */
  String faultOf(byte[] json) {
    JsonNode document;
    try {
      document = JSON.readTree(json);
    } catch (IOException none) {
      return "the body is not JSON, or has a number of more than %,d digits".formatted(MOST_DIGITS);
    }
    TreeSet<String> faults = new TreeSet<>();
    for (Error each : schema.validate(document)) {
      faults.add("%s does not fit '%s'".formatted(path(each.getInstanceLocation()), each.getKeyword()));
    }
    if (faults.isEmpty()) {
      return null;
    }
    String shown = String.join(", ", faults.stream().limit(MOST_FAULTS).toList());
    int more = faults.size() - MOST_FAULTS;
    return "the body does not fit %s: %s%s".formatted(name, shown, more > 0 ? " and %d more".formatted(more) : "");
  }

  private static String path(NodePath location) {
    StringBuilder path = new StringBuilder("msg.body");
    for (int at = 0; at < location.getNameCount(); at++) {
      Object step = location.getElement(at);
      if (step instanceof Integer) {
        path.append('[').append(step).append(']');
      } else {
        String field = String.valueOf(step);
        path.append('.').append(PLAIN.matcher(field).matches() ? field : '"' + field.replace("\"", "\"\"") + '"');
      }
    }
    return path.toString();
  }
}
