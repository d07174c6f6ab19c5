package jmsbridge.serdes;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;

/** Writer of values with a schema: bare ones, or in Confluent's wire format with the schema's id. */
public final class SchemaWriter implements ValueWriter {
  private static final long serialVersionUID = 1L;
  private static final int MOST_HEADS = 10_000;

  private final Role role;
  private final Format format;
  private final SchemaRegistry registry;
  private final SchemaText schema;
  private final StructType type;
  private final String subject;
  private final boolean registers;
  private transient Format.Encoder encoder;
  private transient Map<String, byte[]> heads;

  /**
   * Creates a writer.
   *
   * @param registry null: the values are bare
   * @param type fields of the values
   * @param subject null: each topic has its own
   * @param registers whether a schema that the registry does not have is registered
   */
  SchemaWriter(
      Role role, Format format, SchemaRegistry registry, SchemaText schema, StructType type, String subject,
      boolean registers) {
    this.role = role;
    this.format = format;
    this.registry = registry;
    this.schema = schema;
    this.type = type;
    this.subject = subject;
    this.registers = registers;
    // A schema that cannot be used is found when the topology is planned.
    format.encoder(schema, type);
  }

  /** A writer of what a reader reads, for tests. */
  public static SchemaWriter of(SchemaReader reader) {
    return new SchemaWriter(reader.role, reader.format, reader.registry, reader.schema, reader.type(), null, true);
  }

  /** Fields of the values. */
  public StructType type() {
    return type;
  }

  /** Whether what is written are records; if not, it is in one field, {@code value}. */
  public boolean isRecord() {
    return format.isRecord(schema);
  }

  /** Reader of what is written. */
  public SchemaReader reader() {
    return new SchemaReader(role, format, registry, schema, 0);
  }

  /** Makes sure that the registry knows the schema of a topic's values. */
  void prepare(String topic) {
    if (registry != null) {
      id(topic);
    }
  }

  @Override
  public byte[] write(String topic, InternalRow value) {
    if (encoder == null) {
      encoder = format.encoder(schema, type);
      heads = new Recent<>(MOST_HEADS);
    }
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    if (registry != null) {
      out.writeBytes(head(topic));
    }
    try {
      if (registry != null) {
        encoder.writePrefix(out);
      }
      encoder.write(value, out);
      return out.toByteArray();
    } catch (UnfitValueException failure) {
      throw failure;
    } catch (Exception failure) {
      throw UnfitValueException.of("the fields do not fit the %s schema".formatted(format.type()), failure);
    }
  }

  private byte[] head(String topic) {
    byte[] known = heads.get(topic);
    if (known == null) {
      try {
        known = ByteBuffer.allocate(1 + Integer.BYTES).put(SchemaReader.MAGIC).putInt(id(topic)).array();
      } catch (RegistryOutageException away) {
        throw away;
      } catch (RegistryException refused) {
        // A subject that a record has chosen: those of known topics were asked for at the start.
        throw new UnfitValueException(refused.getMessage());
      }
      heads.put(topic, known);
    }
    return known;
  }

  private int id(String topic) {
    String of = subject == null ? role.subject(topic) : subject;
    return registers
        ? registry.register(format.type(), of, schema)
        : registry.lookUp(format.type(), of, schema);
  }
}
