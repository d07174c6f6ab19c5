package jmsbridge.predicate;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Column function from the steps of a route, as JSON, and a body to what becomes of it.
 *
 * @param <R> type of the result
 */
abstract class Conversions<R> implements ScalarFunction<R> {
  private static final long serialVersionUID = 1L;

  private final String name;
  private final DataType type;
  /** Steps by their JSON: one for each route that has some. */
  private transient Map<UTF8String, BodySteps> known;

  private Conversions(String name, DataType type) {
    this.name = name;
    this.type = type;
  }

  final BodySteps steps(UTF8String json) {
    if (known == null) {
      known = new HashMap<>();
    }
    BodySteps found = known.get(json);
    if (found == null) {
      found = BodySteps.read(json.toString());
      known.put(json.clone(), found);
    }
    return found;
  }

  @Override
  public DataType[] inputTypes() {
    return new DataType[] {DataTypes.StringType, DataTypes.BinaryType};
  }

  @Override
  public DataType resultType() {
    return type;
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public String canonicalName() {
    return "jmsbridge." + name();
  }

  @Override
  public String toString() {
    return name();
  }

  /** The converted body; null if there cannot be one, and the body as it is without steps. */
  public static final class ConvertedBody extends Conversions<byte[]> {
    private static final long serialVersionUID = 1L;

    /** The function; the name of it says nothing more. */
    public ConvertedBody(String name) {
      super("convert:" + name, DataTypes.BinaryType);
    }

    /** Converts a body. */
    public byte[] invoke(UTF8String steps, byte[] body) {
      try {
        return steps == null ? body : steps(steps).body(body);
      } catch (UnconvertibleBodyException none) {
        return null;
      }
    }
  }

  /** The reason why a body cannot be converted; null if it can, or if there are no steps. */
  public static final class ConversionFault extends Conversions<UTF8String> {
    private static final long serialVersionUID = 1L;

    /** The function; the name of it says nothing more. */
    public ConversionFault(String name) {
      super("conversion-fault:" + name, DataTypes.StringType);
    }

    /** Converts a body to see why that cannot be done. */
    public UTF8String invoke(UTF8String steps, byte[] body) {
      try {
        if (steps != null) {
          steps(steps).body(body);
        }
        return null;
      } catch (UnconvertibleBodyException error) {
        return UTF8String.fromString(error.getMessage());
      }
    }
  }
}
