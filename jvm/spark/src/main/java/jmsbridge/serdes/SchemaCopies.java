package jmsbridge.serdes;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Copies of a registry's schemas in a folder, by which a process can start while the registry is away.
 *
 * <p>{@code engine/schemas} reads and writes the same files. An id and a numbered version always stand for the same
 * schema; the latest version may be another one now. A damaged file counts as absent.
 */
final class SchemaCopies {
  private static final Logger LOG = LoggerFactory.getLogger(SchemaCopies.class);
  private static final String TYPE = "schemaType";
  private static final String SCHEMA = "schema";
  private static final String REFERENCES = "references";
  private static final String VERSION = "version";

  private final Path folder;
  private final ObjectMapper json = new ObjectMapper();

  /** Copies in a folder, which need not exist yet; null: none are kept. */
  SchemaCopies(String folder) {
    this.folder = folder == null ? null : Path.of(folder);
  }

  /** The schema of an id; null if there is no copy. */
  SchemaRegistry.Typed schema(int id) {
    JsonNode copy = read("ids", id + ".json");
    return copy == null ? null : new SchemaRegistry.Typed(copy.path(TYPE).asText(), text(copy));
  }

  /** A version of a subject; 0: the one that was the latest. Null if there is no copy. */
  SchemaRegistry.Version version(String type, String subject, int number) {
    JsonNode copy = read(folder(subject), file(number));
    return copy == null || !copy.path(TYPE).asText().equals(type)
        ? null
        : new SchemaRegistry.Version(copy.path(VERSION).asInt(), copy.path("id").asInt(), text(copy));
  }

  /** Keeps the schema of an id. */
  void keep(int id, SchemaRegistry.Typed schema) {
    write("ids", id + ".json", node(schema.type(), schema.schema()));
  }

  /** Keeps a version of a subject; number 0: it is the latest now. */
  void keep(String type, String subject, int number, SchemaRegistry.Version version) {
    ObjectNode node = node(type, version.schema());
    node.put("id", version.id()).put(VERSION, version.number());
    write(folder(subject), file(number), node);
  }

  private static String folder(String subject) {
    // A name may be longer than that of a file, or be made of dots.
    String quoted = URLEncoder.encode(subject, StandardCharsets.UTF_8).replace("+", "%20").replace(".", "%2E");
    return "subjects/" + quoted;
  }

  private static String file(int number) {
    return (number == 0 ? "latest" : number) + ".json";
  }

  private ObjectNode node(String type, SchemaText schema) {
    ObjectNode node = json.createObjectNode().put(TYPE, type);
    add(schema, node);
    return node;
  }

  private void add(SchemaText schema, ObjectNode node) {
    node.put(SCHEMA, schema.text());
    ArrayNode references = node.putArray(REFERENCES);
    for (SchemaText.Reference reference : schema.references()) {
      ObjectNode inner = json.createObjectNode();
      add(reference.schema(), inner);
      references.addObject().put("name", reference.name()).set(SCHEMA, inner);
    }
  }

  private static SchemaText text(JsonNode node) {
    List<SchemaText.Reference> references = new ArrayList<>();
    for (JsonNode reference : node.path(REFERENCES)) {
      references.add(new SchemaText.Reference(reference.path("name").asText(), text(reference.path(SCHEMA))));
    }
    return new SchemaText(node.path(SCHEMA).asText(), references);
  }

  private JsonNode read(String place, String file) {
    if (folder == null) {
      return null;
    }
    Path path = folder.resolve(place).resolve(file);
    try {
      JsonNode copy = Files.exists(path) ? json.readTree(Files.readAllBytes(path)) : null;
      return copy != null && copy.path(SCHEMA).isTextual() && copy.path(TYPE).isTextual() ? copy : null;
    } catch (IOException damaged) {
      LOG.warn("the copy {} of a schema cannot be read, and is not used: {}", path, damaged.getMessage());
      return null;
    }
  }

  private void write(String place, String file, JsonNode content) {
    if (folder == null) {
      return;
    }
    Path path = folder.resolve(place).resolve(file);
    try {
      Files.createDirectories(path.getParent());
      Path written = Files.createTempFile(path.getParent(), "." + file, "");
      Files.write(written, json.writeValueAsBytes(content));
      Files.move(written, path, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    } catch (IOException failure) {
      LOG.warn("no copy of a schema can be kept at {}: {}", path, failure.toString());
    }
  }
}
