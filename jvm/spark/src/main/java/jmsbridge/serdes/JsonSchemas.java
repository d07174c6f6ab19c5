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
import java.util.Locale;
import java.util.Map;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

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
  /** Reads JSON with exact numbers, within the bounds of documents. */
  static final ObjectMapper JSON = JsonMapper.builder()
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
    Map<String, String> referenced = new HashMap<>();
    collect(text.references(), referenced);
    SchemaRegistryConfig settings = SchemaRegistryConfig.builder()
        .formatAssertionsEnabled(false).locale(Locale.ENGLISH).build();
    try {
      Schema schema = com.networknt.schema.SchemaRegistry
          .withDefaultDialect(SpecificationVersion.DRAFT_2020_12, builder -> builder
              .schemaRegistryConfig(settings)
              .schemas(referenced)
              .schemaLoader(loader -> loader.fetchRemoteResources(false)))
          .getSchema(text.text(), InputFormat.JSON);
      schema.initializeValidators();
      return schema;
    } catch (SchemaException | IllegalArgumentException failure) {
      throw new IllegalArgumentException("the JSON Schema cannot be used: " + failure.getMessage(), failure);
    }
  }

  private static void collect(List<SchemaText.Reference> references, Map<String, String> texts) {
    for (SchemaText.Reference reference : references) {
      texts.put(reference.name(), reference.schema().text());
      collect(reference.schema().references(), texts);
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
    List<Error> errors;
    try {
      errors = errors(JSON.readTree(json));
    } catch (IOException none) {
      return "the body is not JSON, or has a number of more than %,d digits".formatted(MOST_DIGITS);
    } catch (StackOverflowError deep) {
      return "%s is nested too deeply for the body, or refers to itself without end".formatted(name);
    }
    String faults = told(errors, each ->
        "%s does not fit '%s'".formatted(path("msg.body", each.getInstanceLocation()), each.getKeyword()));
    return faults.isEmpty() ? null : "the body does not fit %s: %s".formatted(name, faults);
  }

  /** What does not fit in a document. */
  List<Error> errors(JsonNode document) {
    return schema.validate(document);
  }

  /** The first errors in words, and the number of further ones; empty: there are none. */
  static String told(List<Error> errors, Function<Error, String> words) {
    TreeSet<String> faults = errors.stream().map(words).collect(Collectors.toCollection(TreeSet::new));
    String shown = String.join(", ", faults.stream().limit(MOST_FAULTS).toList());
    int more = faults.size() - MOST_FAULTS;
    return more > 0 ? "%s and %d more".formatted(shown, more) : shown;
  }

  /** Path of a place in a document whose own path is {@code root}. */
  static String path(String root, NodePath location) {
    StringBuilder path = new StringBuilder(root);
    for (int index = 0; index < location.getNameCount(); index++) {
      Object step = location.getElement(index);
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
