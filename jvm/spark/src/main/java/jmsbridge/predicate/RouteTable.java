package jmsbridge.predicate;

import java.util.List;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/**
 * Ordered table of rules, as a function from a record's headers to the first rule that accepts the record.
 *
 * <p>No code is generated for the rules, so a thousand of them start as quickly as one, and no method outgrows what the
 * JVM compiles. Each task of Spark has a table of its own over the same {@link Rules}.
 */
public final class RouteTable implements ScalarFunction<Integer> {
  private static final long serialVersionUID = 1L;
  private static final Known<RouteTable> TABLES = new Known<>();

  private final String name;
  private final String json;
  private final transient Rules rules;
  /** What the record before had; not shared with other tasks, whose records have layouts of their own. */
  private final transient Fields.Recent recent = new Fields.Recent();

  private RouteTable(String name, String json, Rules rules) {
    this.name = name;
    this.json = json;
    this.rules = rules;
  }

  /** The table of that name, made from the JSON of {@code routes/predicate/columns.py} if it does not exist yet. */
  public static RouteTable put(String name, String json) {
    return TABLES.put(name, () -> new RouteTable(name, json, new Rules(json)));
  }

  /** The table of that name; null if there is none. */
  static RouteTable get(String name) {
    return TABLES.get(name);
  }

  /** Index of the first rule whose include is true and whose exclude is not; null if there is none. */
  public Integer invoke(ArrayData headers) {
    return rules.first(new Fields(rules.names, recent, headers, null));
  }

  /** As {@link #invoke(ArrayData)}, for rules that ask for the body. */
  public Integer invoke(ArrayData headers, byte[] body) {
    return rules.first(new Fields(rules.names, recent, headers, new Body(rules.paths, body)));
  }

  @Override
  public DataType[] inputTypes() {
    DataType header = DataTypes.createStructType(List.of(
        DataTypes.createStructField("key", DataTypes.StringType, true),
        DataTypes.createStructField("value", DataTypes.BinaryType, true)));
    DataType headers = DataTypes.createArrayType(header);
    return rules.asksForBody ? new DataType[] {headers, DataTypes.BinaryType} : new DataType[] {headers};
  }

  @Override
  public DataType resultType() {
    return DataTypes.IntegerType;
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public String canonicalName() {
    return "jmsbridge." + name;
  }

  @Override
  public String toString() {
    return name;
  }

  private Object readResolve() {
    return new RouteTable(name, json, put(name, json).rules);
  }
}
