package jmsbridge.serdes;

import java.io.EOFException;
import java.io.IOException;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;

/**
 * Reader of bodies with a schema: bare values of sources with a schema, and Avro, Protobuf and JSON Schema in
 * Confluent's wire format.
 *
 * <p>Any other body has no schema. {@code engine/schemas/documents.py} is the same in Python.
 */
public final class Documents implements Serializable {
  private static final long serialVersionUID = 1L;
  private static final int HEAD_BYTES = 1 + Integer.BYTES;
  private static final int MOST_READERS = 1_000;
  /** Those of this process, which functions over bodies take with them when they are made; null: no body is read. */
  private static volatile Documents used;

  /** The registry of the schemas of Confluent's wire format; null: there is none. */
  private final SchemaRegistry registry;
  /** Schemas of bare values, by the names of the sources that receive them. */
  private final HashMap<String, SourceSchema> sources;
  private transient Map<Integer, WriterSchema> writers;
  private transient Map<String, WriterSchema> sourceWriters;

  public Documents(SchemaRegistry registry) {
    this(registry, new HashMap<>());
  }

  Documents(SchemaRegistry registry, HashMap<String, SourceSchema> sources) {
    this.registry = registry;
    this.sources = sources;
  }

  /** Sets those of this process; null: no body is read. */
  public static void use(Documents documents) {
    used = documents;
  }

  /** Those of this process, for one task: a task has readers of its own. */
  public static Documents used() {
    Documents documents = used;
    return documents == null ? null : new Documents(documents.registry, documents.sources);
  }

  /** Whether the origin of a body counts, since a source has a schema. */
  public boolean areOfSources() {
    return !sources.isEmpty();
  }

  /** Whether a body is a bare value, or begins as Confluent's wire format does, which JSON and XML never do. */
  public boolean haveSchema(byte[] body, BodyOrigin origin) {
    return ofSource(origin) != null || registry != null && body.length > 0 && body[0] == SchemaReader.MAGIC;
  }

  /** As {@link #read(byte[], BodyOrigin)}, for a body in Confluent's wire format. */
  public Document read(byte[] body) {
    return read(body, BodyOrigin.NONE);
  }

  /**
   * The content of a body that has a schema.
   *
   * <p>UnfitValueException with the reason if it cannot be read; waits while the registry is away.
   */
  public Document read(byte[] body, BodyOrigin origin) {
    WriterSchema writer = writer(body, origin);
    String type = writer.typed().type();
    try {
      ByteBuffer bytes = ByteBuffer.wrap(body, writer.begin(), body.length - writer.begin());
      return new Document(type, writer.reader().json(bytes));
    } catch (UnfitValueException failure) {
      throw failure;
    } catch (EOFException end) {
      throw new UnfitValueException("the bytes end before the %s value of %s does".formatted(type, writer.words()));
    } catch (IOException | RuntimeException failure) {
      throw UnfitValueException.of("the bytes are not a valid %s value of %s".formatted(type, writer.words()), failure);
    }
  }

  /** The schema by which a body was written that has one; UnfitValueException if it is not known. */
  WriterSchema writer(byte[] body, BodyOrigin origin) {
    SourceSchema source = ofSource(origin);
    if (source != null) {
      if (sourceWriters == null) {
        sourceWriters = new HashMap<>();
      }
      return sourceWriters.computeIfAbsent(origin.source(), any -> source.writer());
    }
    if (body.length < HEAD_BYTES) {
      throw new UnfitValueException(
          "%d bytes are fewer than Confluent's wire format has before a value".formatted(body.length));
    }
    return registered(ByteBuffer.wrap(body).getInt(1));
  }

  /** The schema of the source of a body, if the body is a bare value; else null. */
  private SourceSchema ofSource(BodyOrigin origin) {
    SourceSchema schema = origin.source() == null ? null : sources.get(origin.source());
    return schema != null && schema.has(origin.kind()) ? schema : null;
  }

  private WriterSchema registered(int id) {
    if (writers == null) {
      writers = new Recent<>(MOST_READERS);
    }
    WriterSchema writer = writers.get(id);
    if (writer == null) {
      SchemaRegistry.Typed typed = registry.typed(id);
      String words = "the schema with the id %d".formatted(id);
      try {
        writer = new WriterSchema(words, typed, reader(typed), HEAD_BYTES);
      } catch (RuntimeException failure) {
        // The libraries have errors of their own for some schemas; one schema does not end the query.
        throw UnfitValueException.of(words, failure);
      }
      writers.put(id, writer);
    }
    return writer;
  }

  private static DocumentReader reader(SchemaRegistry.Typed typed) {
    return switch (typed.type()) {
      case "AVRO" -> new AvroDocuments(typed.schema());
      case "PROTOBUF" -> new ProtobufDocuments(typed.schema());
      case "JSON" -> Documents::rest;
      default -> throw new IllegalArgumentException("it is of the unknown format " + typed.type());
    };
  }

  private static byte[] rest(ByteBuffer bytes) {
    byte[] text = new byte[bytes.remaining()];
    bytes.get(text);
    return text;
  }
}
