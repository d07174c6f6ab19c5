package jmsbridge.serdes;

import java.io.EOFException;
import java.io.IOException;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.util.Map;

/**
 * Reader of bodies with a schema: Avro, Protobuf and JSON Schema in Confluent's wire format.
 *
 * <p>A body without such a beginning has no schema. {@code engine/schemas/documents.py} is the same in Python.
 */
public final class Documents implements Serializable {
  private static final long serialVersionUID = 1L;
  private static final int HEAD_BYTES = 1 + Integer.BYTES;
  private static final int MOST_READERS = 1_000;
  /** Those of this process, which functions over bodies take with them when they are made; null: there is no registry. */
  private static volatile Documents used;

  private record Known(String type, DocumentReader reader) {}

  private final SchemaRegistry registry;
  private transient Map<Integer, Known> readers;

  public Documents(SchemaRegistry registry) {
    this.registry = registry;
  }

  /** Sets those of this process; null: there is no registry. */
  public static void use(Documents documents) {
    used = documents;
  }

  /** Those of this process, for one task: a task has readers of its own. */
  public static Documents used() {
    Documents documents = used;
    return documents == null ? null : new Documents(documents.registry);
  }

  /** Whether a body begins as one with a schema does; one of JSON or XML never does. */
  public static boolean haveSchema(byte[] body) {
    return body.length > 0 && body[0] == SchemaReader.MAGIC;
  }

  /**
   * The content of a body that begins as one with a schema does.
   *
   * <p>UnfitValueException with the reason if it cannot be read; waits while the registry is away.
   */
  public Document read(byte[] body) {
    if (body.length < HEAD_BYTES) {
      throw new UnfitValueException(
          "%d bytes are fewer than Confluent's wire format has before a value".formatted(body.length));
    }
    ByteBuffer bytes = ByteBuffer.wrap(body, HEAD_BYTES, body.length - HEAD_BYTES);
    int id = id(body);
    Known known = known(id);
    try {
      return new Document(known.type, known.reader.json(bytes));
    } catch (UnfitValueException failure) {
      throw failure;
    } catch (EOFException end) {
      throw new UnfitValueException(
          "the bytes end before the %s value of the schema with the id %d does".formatted(known.type, id));
    } catch (IOException | RuntimeException failure) {
      throw UnfitValueException.of(
          "the bytes are not a valid %s value of the schema with the id %d".formatted(known.type, id), failure);
    }
  }

  /** Id of the schema of a body that begins as one with a schema does, and has the bytes for it. */
  static int id(byte[] body) {
    return ByteBuffer.wrap(body).getInt(1);
  }

  /** The schema of an id; UnfitValueException if there is none. */
  SchemaRegistry.Typed schema(int id) {
    return registry.typed(id);
  }

  private Known known(int id) {
    if (readers == null) {
      readers = new Recent<>(MOST_READERS);
    }
    Known found = readers.get(id);
    if (found == null) {
      SchemaRegistry.Typed typed = registry.typed(id);
      try {
        found = new Known(typed.type(), reader(typed));
      } catch (RuntimeException failure) {
        // The libraries have errors of their own for some schemas; one schema does not end the query.
        throw UnfitValueException.of("the schema with the id %d".formatted(id), failure);
      }
      readers.put(id, found);
    }
    return found;
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
