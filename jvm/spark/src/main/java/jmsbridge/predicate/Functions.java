package jmsbridge.predicate;

import java.util.Map;
import java.util.function.Function;
import jmsbridge.kafka.HeaderFunction;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Catalog of Spark functions. Over the headers of a record: route tables by their names, {@code header:NAME}, the text
 * of a header, {@code has-header:NAME}, {@code declared-type:PROPERTY}, {@code edited-headers:}, which also takes edits
 * and a body, {@code filled:}, which also takes a template and a body, and, with a body, {@code body:PATH},
 * {@code body-fault:FORMAT}, {@code schema-fault:SCHEMAS} and {@code mask:MASKS}. Over a type and a key:
 * {@code key-check:SETTINGS}. Over a body: {@code written:SCHEMAS}, {@code writing-fault:SCHEMAS},
 * {@code mask-types:MASKS}, {@code convert:}, {@code conversion-fault:} and {@code claim:FOLDER}. Spark calls functions
 * of a catalog with its own rows, unconverted.
 */
public final class Functions implements FunctionCatalog {
  private static final Map<String, Function<String, BoundFunction>> BY_PREFIX = Map.ofEntries(
      Map.entry("header", HeaderFunction.Text::new),
      Map.entry("has-header", HeaderFunction.Has::new),
      Map.entry("declared-type", DeclaredType::new),
      Map.entry("edited-headers", EditedHeaders::new),
      Map.entry("filled", FilledText::new),
      Map.entry("key-check", KeyCheck::new),
      Map.entry("body", BodyField::new),
      Map.entry("body-fault", BodyFault::new),
      Map.entry("schema-fault", BodySchemas.SchemaFault::new),
      Map.entry("written", BodySchemas.WrittenBody::new),
      Map.entry("writing-fault", BodySchemas.WritingFault::new),
      Map.entry("mask", Masks.MaskedBody::new),
      Map.entry("mask-types", Masks.MaskedTypes::new),
      Map.entry("convert", Conversions.ConvertedBody::new),
      Map.entry("conversion-fault", Conversions.ConversionFault::new),
      Map.entry("claim", ClaimedBody::new));

  private String name;

  @Override
  public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public Identifier[] listFunctions(String[] namespace) {
    return new Identifier[0];
  }

  @Override
  public UnboundFunction loadFunction(Identifier function) {
    BoundFunction bound = find(function.name());
    return new UnboundFunction() {
      private static final long serialVersionUID = 1L;

      @Override
      public BoundFunction bind(StructType arguments) {
        return bound;
      }

      @Override
      public String description() {
        return name();
      }

      @Override
      public String name() {
        return function.name();
      }
    };
  }

  private static BoundFunction find(String name) {
    int end = name.indexOf(':');
    if (end >= 0 && BY_PREFIX.containsKey(name.substring(0, end))) {
      return BY_PREFIX.get(name.substring(0, end)).apply(name.substring(end + 1));
    }
    RouteTable<?> table = RouteTable.get(name);
    if (table == null) {
      throw new IllegalArgumentException("no route table " + name);
    }
    return table;
  }
}
