package jmsbridge.predicate;

import java.util.List;
import jmsbridge.serdes.Documents;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/**
 * Ordered table of rules, as a function from a record's headers to the rules that accept the record.
 *
 * <p>No code is generated for the rules, so a thousand of them start as quickly as one, and no method outgrows what the
 * JVM compiles. Each task of Spark has a table of its own over the same {@link Rules}.
 */
public abstract class RouteTable<T> implements ScalarFunction<T> {
  private static final long serialVersionUID = 1L;
  private static final Known<Table> TABLES = new Known<>();

  /** Rules with the JSON that they were made from. */
  private record Table(String json, Rules rules) {}

  private final String name;
  private final String json;
  private final transient Rules rules;
  private final Documents documents;
  private final Bounds bounds;
  /** What the record before had; not shared with other tasks, whose records have layouts of their own. */
  private final transient Fields.Recent recent = new Fields.Recent();

  private RouteTable(String name, Table table, Documents documents, Bounds bounds) {
    this.name = name;
    json = table.json;
    rules = table.rules;
    this.documents = documents;
    this.bounds = bounds;
  }

  /** Makes the rules of that name of the JSON of {@code routes/predicate/rule_json.py}, if they do not exist yet. */
  public static void put(String name, String json) {
    known(name, json);
  }

  private static Table known(String name, String json) {
    return TABLES.put(name, () -> new Table(json, new Rules(json)));
  }

  private static RouteTable<?> make(String name, Table table, Documents documents, Bounds bounds) {
    return table.rules.havePublications() ? new All(name, table, documents, bounds) : new First(name, table, documents, bounds);
  }

  /** A table over the rules of that name; null if there are none. */
  static RouteTable<?> get(String name) {
    Table table = TABLES.get(name);
    return table == null ? null : make(name, table, Documents.used(), Bounds.used());
  }

  /** Index of the first rule whose include is true and whose exclude is not; null if there is none. */
  public static final class First extends RouteTable<Integer> {
    private static final long serialVersionUID = 1L;

    First(String name, Table table, Documents documents, Bounds bounds) {
      super(name, table, documents, bounds);
    }

    /** The index for a record with these headers, which may be null. */
    public Integer invoke(ArrayData headers) {
      return rules().first(fields(headers));
    }

    /** As {@link #invoke(ArrayData)}, for rules that ask for the body. */
    public Integer invoke(ArrayData headers, byte[] body) {
      return rules().first(fields(headers, body));
    }

    @Override
    public DataType resultType() {
      return DataTypes.IntegerType;
    }
  }

  /** Numbers of the publications of all rules that take the record; -1 alone if there is none. */
  public static final class All extends RouteTable<ArrayData> {
    private static final long serialVersionUID = 1L;
    private static final int[] NONE = {-1};

    All(String name, Table table, Documents documents, Bounds bounds) {
      super(name, table, documents, bounds);
    }

    /** The numbers for a record with these headers, which may be null. */
    public ArrayData invoke(ArrayData headers) {
      return numbers(fields(headers));
    }

    /** As {@link #invoke(ArrayData)}, for rules that ask for the body. */
    public ArrayData invoke(ArrayData headers, byte[] body) {
      return numbers(fields(headers, body));
    }

    private ArrayData numbers(Fields fields) {
      int[] publications = rules().publications(fields);
      return UnsafeArrayData.fromPrimitiveArray(publications.length == 0 ? NONE : publications);
    }

    @Override
    public DataType resultType() {
      return DataTypes.createArrayType(DataTypes.IntegerType, false);
    }
  }

  final Rules rules() {
    return rules;
  }

  final Fields fields(ArrayData headers) {
    return new Fields(rules.names, recent, headers, null);
  }

  final Fields fields(ArrayData headers, byte[] body) {
    return new Fields(rules.names, recent, headers, new Body(rules.paths, documents, bounds, headers, body));
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

  /** The table of that name in this process. */
  protected final Object readResolve() {
    return make(name, known(name, json), documents, bounds);
  }
}
