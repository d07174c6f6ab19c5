package jmsbridge.predicate;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.Serializable;
import java.util.HashMap;
import java.util.Map;
import jmsbridge.kafka.HeaderFunction;
import jmsbridge.serdes.Documents;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Masks of routes, by the names of the routes.
 *
 * <p>They hold secrets. So plans, which Spark prints, have only their name; they go to executors with their functions.
 */
public final class Masks implements Serializable {
  private static final long serialVersionUID = 1L;
  private static final Known<Masks> KNOWN = new Known<>();

  private final String name;
  private final String json;
  private final transient Map<UTF8String, Mask> masks = new HashMap<>();

  private Masks(String name, String json) {
    this.name = name;
    this.json = json;
    read(json).properties()
        .forEach(each -> masks.put(UTF8String.fromString(each.getKey()), new Mask(each.getValue())));
  }

  private static JsonNode read(String json) {
    try {
      return new ObjectMapper().readTree(json);
    } catch (JsonProcessingException secret) {
      // Its text quotes what it could not read.
      throw new IllegalArgumentException("the masks are not JSON");
    }
  }

  /** The masks of that name, made from the JSON of {@code engine/router/plan/masks.py} if they do not exist yet. */
  public static Masks put(String name, String json) {
    return KNOWN.put(name, () -> new Masks(name, json));
  }

  private static Masks get(String name) {
    Masks masks = KNOWN.get(name);
    if (masks == null) {
      throw new IllegalArgumentException("no masks " + name);
    }
    return masks;
  }

  private Object readResolve() {
    return put(name, json);
  }

  @Override
  public String toString() {
    return name;
  }

  /** Column function from headers, a route's name and a body to the masked body; null if there cannot be one. */
  public static final class MaskedBody extends NamedFunction<byte[]> {
    private static final long serialVersionUID = 1L;

    private final Masks masks;
    private final Documents documents = Documents.used();
    private final Bounds bounds = Bounds.used();

    /** Function for the masks of that name. */
    public MaskedBody(String name) {
      super("mask:" + name, DataTypes.BinaryType, HeaderFunction.HEADERS, DataTypes.StringType, DataTypes.BinaryType);
      masks = get(name);
    }

    /** The masked body; null also for one with a schema, and without a route that has a mask. */
    public byte[] invoke(ArrayData headers, UTF8String route, byte[] body) {
      Mask mask = masks.masks.get(route);
      // The bytes of a bare value may look like JSON that has none of the fields to mask.
      return mask == null || Body.hasSchema(documents, headers, body) ? null : mask.body(body, bounds);
    }
  }

  /** Column function from a route's name, a body, its kind and its types to the types of the masked body. */
  public static final class MaskedTypes extends NamedFunction<UTF8String> {
    private static final long serialVersionUID = 1L;
    private static final UTF8String MAP = UTF8String.fromString("map");
    private static final DataType[] TYPES = {
      DataTypes.StringType, DataTypes.BinaryType, DataTypes.StringType, DataTypes.StringType
    };

    private final Masks masks;
    private final Bounds bounds = Bounds.used();

    /** Function for the masks of that name. */
    public MaskedTypes(String name) {
      super("mask-types:" + name, DataTypes.StringType, TYPES);
      masks = get(name);
    }

    /** The types; those given without a route that has a mask. The kind is a map or a stream. */
    public UTF8String invoke(UTF8String route, byte[] body, UTF8String kind, UTF8String types) {
      Mask mask = masks.masks.get(route);
      if (mask == null || body == null || kind == null || types == null) {
        return types;
      }
      return UTF8String.fromString(mask.types(body, types.toString(), kind.equals(MAP), bounds));
    }
  }
}
