package jmsbridge.predicate;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.Serializable;
import java.util.HashMap;
import java.util.Map;
import jmsbridge.serdes.BodyCheck;
import jmsbridge.serdes.BodyChecks;
import jmsbridge.serdes.Documents;
import jmsbridge.serdes.NamedSchema;
import jmsbridge.serdes.SchemaRegistry;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Schemas that bodies of routes have to fit, by the names of the routes.
 *
 * <p>They are found when the plan is made, and go to executors with their functions.
 */
public final class BodySchemas implements Serializable {
  private static final long serialVersionUID = 1L;
  private static final Known<BodySchemas> KNOWN = new Known<>();

  private final HashMap<String, NamedSchema> schemas = new HashMap<>();

  private BodySchemas() {}

  /**
   * Finds the schemas that the JSON of {@code engine/router/plan/schemas.py} describes.
   *
   * @param registry null: there is no registry
   */
  public static void put(String name, String json, SchemaRegistry registry) {
    BodySchemas found = new BodySchemas();
    for (Map.Entry<String, JsonNode> each : read(json).properties()) {
      found.schemas.put(each.getKey(), NamedSchema.find(each.getValue(), registry));
    }
    KNOWN.replace(name, found);
  }

  private static JsonNode read(String json) {
    try {
      return new ObjectMapper().readTree(json);
    } catch (JsonProcessingException error) {
      throw new IllegalArgumentException(error);
    }
  }

  private static BodySchemas get(String name) {
    BodySchemas found = KNOWN.get(name);
    if (found == null) {
      throw new IllegalArgumentException("no schemas " + name);
    }
    return found;
  }

  /** Column function from a route's name and a body to the reason why it does not fit the route's schema. */
  public static final class SchemaFault extends NamedFunction<UTF8String> {
    private static final long serialVersionUID = 1L;

    private final BodySchemas schemas;
    private final Documents documents = Documents.used();
    private transient Map<UTF8String, BodyCheck> checks;

    /** Function for the schemas of that name. */
    public SchemaFault(String name) {
      super("schema-fault:" + name, DataTypes.StringType, DataTypes.StringType, DataTypes.BinaryType);
      schemas = get(name);
    }

    /** The reason; null if the body fits, if there is none, and for a route without a schema. */
    public UTF8String invoke(UTF8String route, byte[] body) {
      if (route == null || body == null) {
        return null;
      }
      if (checks == null) {
        checks = new HashMap<>();
        schemas.schemas.forEach((of, schema) -> checks.put(UTF8String.fromString(of), BodyChecks.of(schema, documents)));
      }
      BodyCheck check = checks.get(route);
      String fault = check == null ? null : check.fault(body);
      return fault == null ? null : UTF8String.fromString(fault);
    }
  }
}
