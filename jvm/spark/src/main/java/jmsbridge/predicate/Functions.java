package jmsbridge.predicate;

import jmsbridge.kafka.HeaderFunction;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Catalog of Spark functions over the headers of a record: route tables by their names, and {@code header:NAME}, the
 * text of a header, and {@code has-header:NAME}. Spark calls functions of a catalog with its own rows, unconverted.
 */
public final class Functions implements FunctionCatalog {
  private static final String HEADER = "header:";
  private static final String HAS_HEADER = "has-header:";

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
    BoundFunction found = find(function.name());
    return new UnboundFunction() {
      private static final long serialVersionUID = 1L;

      @Override
      public BoundFunction bind(StructType arguments) {
        return found;
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
    if (name.startsWith(HEADER)) {
      return new HeaderFunction.Text(name.substring(HEADER.length()));
    }
    if (name.startsWith(HAS_HEADER)) {
      return new HeaderFunction.Has(name.substring(HAS_HEADER.length()));
    }
    RouteTable table = RouteTable.get(name);
    if (table == null) {
      throw new IllegalArgumentException("no route table " + name);
    }
    return table;
  }
}
