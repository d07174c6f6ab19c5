package jmsbridge.serdes;

import java.util.List;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** Serde of keys or values with a schema, as it is declared; makes readers and writers when a topology is planned. */
public final class SchemaSerde {
  private final Role role;
  private final Format format;
  private final SchemaRegistry registry;
  private final String given;
  private final String subject;
  private final int version;
  private final boolean registers;

  /**
   * Creates the serde.
   *
   * @param role {@code KEY} or {@code VALUE}
   * @param format name of the format in a registry
   * @param message the message in a Protobuf schema; empty: its first
   * @param registry null: values are bare
   * @param given the schema, in base64 for Protobuf; empty: that of the subject or, for a sink, of its fields
   * @param subject empty: the topic's own, by the TopicNameStrategy
   * @param version version of the subject; 0: the latest
   * @param registers whether a sink registers its schema
   */
  public SchemaSerde(
      String role, String format, String message, SchemaRegistry registry, String given, String subject, int version,
      boolean registers) {
    this.role = Role.valueOf(role);
    this.format = Formats.of(format, message);
    this.registry = registry;
    this.given = given;
    this.subject = subject;
    this.version = version;
    this.registers = registers;
  }

  /** Registers the given schema, for tests; returns its id. */
  public int register(String under) {
    return registry.register(format.type(), under, format.schema(given));
  }

  /** Subject of a topic's keys or values in the registry. */
  public String subject(String topic) {
    return subject.isEmpty() ? role.subject(topic) : subject;
  }

  /**
   * A reader of a topic's keys or values.
   *
   * <p>Where the latest version of the subject would give the fields, a version before it does as long as it can read
   * values of the latest.
   *
   * @param pinned that version; 0: none
   */
  public SchemaReader reader(String topic, int pinned) {
    if (!given.isEmpty()) {
      return new SchemaReader(role, format, registry, format.schema(given), 0);
    }
    SchemaRegistry.Version registered = registered(topic);
    if (version != 0) {
      return new SchemaReader(role, format, registry, registered.schema(), 0);
    }
    SchemaRegistry.Version used = pinned == 0 || pinned == registered.number() ? registered : pinned(topic, pinned, registered);
    return new SchemaReader(role, format, registry, used.schema(), used.number());
  }

  private SchemaRegistry.Version pinned(String topic, int pinned, SchemaRegistry.Version latest) {
    SchemaRegistry.Version before;
    try {
      before = registry.version(format.type(), subject(topic), pinned);
    } catch (RegistryOutageException away) {
      throw away;
    } catch (RegistryException | UnfitValueException gone) {
      return latest;
    }
    return format.reads(latest.schema(), before.schema()) ? before : latest;
  }

  /** A writer of values of this type; {@code topic} is null if each record chooses its own. */
  public SchemaWriter writer(String topic, DataType type) {
    SchemaText schema = writersSchema(topic, type);
    if (role == Role.KEY && type instanceof StructType != format.isRecord(schema)) {
      throw new IllegalArgumentException(
          "keys of the type %s do not fit a schema of %s: choose another key with select_key"
              .formatted(type.simpleString(), format.isRecord(schema) ? "records" : "single values"));
    }
    if (type instanceof StructType fields) {
      check(fields, format.fields(schema), format.required(schema));
    }
    StructType written =
        format.written(schema, type instanceof StructType fields ? fields : new StructType().add("value", type));
    SchemaWriter writer =
        new SchemaWriter(role, format, registry, schema, written, subject.isEmpty() ? null : subject, registers);
    if (topic != null || !subject.isEmpty()) {
      writer.prepare(topic);
    }
    return writer;
  }

  private SchemaText writersSchema(String topic, DataType type) {
    if (!given.isEmpty()) {
      return format.schema(given);
    }
    if (registers && version == 0) {
      return format.schema(type, role.recordName());
    }
    return registered(topic).schema();
  }

  private SchemaRegistry.Version registered(String topic) {
    if (subject.isEmpty() && topic == null) {
      throw new IllegalArgumentException(
          "each record chooses its topic, so the schema of no one topic can be taken: give a schema or a subject");
    }
    return registry.version(format.type(), subject(topic), version);
  }

  private void check(StructType fields, StructType wanted, List<String> required) {
    List<String> names = List.of(fields.fieldNames());
    List<String> known = List.of(wanted.fieldNames());
    List<String> missing = required.stream().filter(each -> !names.contains(each)).toList();
    List<String> more = names.stream().filter(each -> !known.contains(each)).toList();
    if (!missing.isEmpty() || !more.isEmpty()) {
      throw new IllegalArgumentException(
          "the fields %s do not fit the schema's %s (missing: %s; not in the schema: %s): choose others with %s"
              .formatted(names, known, missing, more, role == Role.KEY ? "select_key" : "map_values"));
    }
  }
}
