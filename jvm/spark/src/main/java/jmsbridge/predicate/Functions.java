package jmsbridge.predicate;

import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Catalog of route tables as Spark functions; Spark calls functions of a catalog with its own rows, unconverted. */
public final class Functions implements FunctionCatalog {
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
    RouteTable table = RouteTable.get(function.name());
    if (table == null) {
      throw new IllegalArgumentException("no route table " + function.name());
    }
    return new UnboundFunction() {
      private static final long serialVersionUID = 1L;

      @Override
      public BoundFunction bind(StructType arguments) {
        return table;
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
}
