package jmsbridge.predicate;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.Serializable;
import java.util.HashMap;
import java.util.Map;
import jmsbridge.kafka.HeaderFunction;
import jmsbridge.serdes.BodyCheck;
import jmsbridge.serdes.BodyChecks;
import jmsbridge.serdes.BodyOrigin;
import jmsbridge.serdes.BodyWriter;
import jmsbridge.serdes.Documents;
import jmsbridge.serdes.NamedSchema;
import jmsbridge.serdes.SchemaRegistry;
import jmsbridge.serdes.UnfitValueException;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Schemas that bodies of routes have to fit, and schemas by which they are written.
 *
 * <p>They are found when the plan is made, and go to executors with their functions.
 */
public final class BodySchemas implements Serializable {
  private static final long serialVersionUID = 1L;
  private static final Known<BodySchemas> KNOWN = new Known<>();

  /** Schemas that bodies have to fit, by the names of the routes. */
  private final HashMap<String, NamedSchema> read;
  /** Schemas by which bodies are written, by the names of the publications. */
  private final HashMap<String, NamedSchema> written;

  private BodySchemas(JsonNode json, SchemaRegistry registry) {
    read = found(json.get("read"), registry);
    written = found(json.get("written"), registry);
  }

  private static HashMap<String, NamedSchema> found(JsonNode given, SchemaRegistry registry) {
    HashMap<String, NamedSchema> schemas = new HashMap<>();
    given.properties().forEach(each -> schemas.put(each.getKey(), NamedSchema.find(each.getValue(), registry)));
    return schemas;
  }

  /**
   * Finds the schemas that the JSON of {@code engine/router/plan/schemas.py} describes.
   *
   * @param registry null: there is no registry
   */
  public static void put(String name, String json, SchemaRegistry registry) {
    try {
      KNOWN.replace(name, new BodySchemas(new ObjectMapper().readTree(json), registry));
    } catch (JsonProcessingException error) {
      throw new IllegalArgumentException(error);
    }
  }

  private static BodySchemas get(String name) {
    BodySchemas schemas = KNOWN.get(name);
    if (schemas == null) {
      throw new IllegalArgumentException("no schemas " + name);
    }
    return schemas;
  }

  /** Column function from headers, a route's name and a body to the reason why it does not fit the route's schema. */
  public static final class SchemaFault extends NamedFunction<UTF8String> {
    private static final long serialVersionUID = 1L;

    private final BodySchemas schemas;
    private final Documents documents = Documents.used();
    private transient Map<UTF8String, BodyCheck> checks;

    /** Function for the schemas of that name. */
    public SchemaFault(String name) {
      super(
          "schema-fault:" + name,
          DataTypes.StringType,
          HeaderFunction.HEADERS, DataTypes.StringType, DataTypes.BinaryType);
      schemas = get(name);
    }

    /** The reason; null if the body fits, if there is none, and for a route without a schema. */
    public UTF8String invoke(ArrayData headers, UTF8String route, byte[] body) {
      if (route == null || body == null) {
        return null;
      }
      if (checks == null) {
        checks = new HashMap<>();
        schemas.read.forEach((of, schema) -> checks.put(UTF8String.fromString(of), BodyChecks.of(schema, documents)));
      }
      BodyCheck check = checks.get(route);
      BodyOrigin origin = documents == null ? BodyOrigin.NONE : Body.origin(documents, headers, body);
      String fault = check == null ? null : check.fault(body, origin);
      return fault == null ? null : UTF8String.fromString(fault);
    }
  }

  /** Column function from a publication's name and a body to something of the body that is written by a schema. */
  private abstract static class Writing<R> extends NamedFunction<R> {
    private static final long serialVersionUID = 1L;

    private final BodySchemas schemas;
    private transient Map<UTF8String, BodyWriter> writers;

    private Writing(String function, String name, DataType result) {
      super(function + name, result, DataTypes.StringType, DataTypes.BinaryType);
      schemas = get(name);
    }

    /** The writer of a publication, which has one. */
    final BodyWriter writer(UTF8String publication) {
      if (writers == null) {
        writers = new HashMap<>();
        schemas.written.forEach((of, schema) -> writers.put(UTF8String.fromString(of), new BodyWriter(schema)));
      }
      return writers.get(publication);
    }
  }

  /** The body in Confluent's wire format; null if it does not fit, and without a publication that has a schema. */
  public static final class WrittenBody extends Writing<byte[]> {
    private static final long serialVersionUID = 1L;

    /** Function for the schemas of that name. */
    public WrittenBody(String name) {
      super("written:", name, DataTypes.BinaryType);
    }

    /** Writes a body. */
    public byte[] invoke(UTF8String publication, byte[] body) {
      try {
        return publication == null || body == null ? null : writer(publication).write(body);
      } catch (UnfitValueException unfit) {
        return null;
      }
    }
  }

  /** The reason why a body cannot be written; null if it can, and without a publication that has a schema. */
  public static final class WritingFault extends Writing<UTF8String> {
    private static final long serialVersionUID = 1L;

    /** Function for the schemas of that name. */
    public WritingFault(String name) {
      super("writing-fault:", name, DataTypes.StringType);
    }

    /** Writes a body to see why that cannot be done. */
    public UTF8String invoke(UTF8String publication, byte[] body) {
      if (publication == null) {
        return null;
      }
      try {
        writer(publication).write(body);
        return null;
      } catch (UnfitValueException unfit) {
        return UTF8String.fromString(unfit.getMessage());
      }
    }
  }
}
