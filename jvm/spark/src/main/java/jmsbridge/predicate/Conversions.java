package jmsbridge.predicate;

import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Column function from the steps of a route, as JSON, and a body to what becomes of it.
 *
 * @param <R> type of the result
 */
abstract class Conversions<R> extends NamedFunction<R> {
  private static final long serialVersionUID = 1L;

  private final Bounds bounds = Bounds.used();
  /** Steps by their JSON: one for each route that has some. */
  private transient ByJson<BodySteps> known;

  private Conversions(String name, DataType result) {
    super(name, result, DataTypes.StringType, DataTypes.BinaryType);
  }

  final BodySteps steps(UTF8String steps) {
    if (known == null) {
      known = new ByJson<>(json -> new BodySteps(json, bounds));
    }
    return known.of(steps);
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
