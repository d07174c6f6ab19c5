package jmsbridge.streams;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import jmsbridge.serdes.SchemaReader;
import jmsbridge.serdes.SchemaSerde;
import jmsbridge.serdes.SchemaWriter;
import jmsbridge.serdes.ValueReader;
import jmsbridge.serdes.ValueWriter;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Planner of a topology: makes the nodes of its program one after the other, parents first, with the columns of their
 * functions. It stays with the session; tasks get the program.
 *
 * <p>Methods that make a node throw AnalysisException or IllegalArgumentException for columns that do not fit.
 */
public final class Planner {
  private static final StructType RAW = new StructType().add("value", DataTypes.BinaryType);
  private static final String VALUE = "value";

  private final SparkSession session;
  private final Program program;
  private final Map<String, KeyKind> keys = new HashMap<>();
  /** Aggregators behind internal topics that are for them alone, by the readers of these. */
  private final Map<String, Aggregator> behind = new HashMap<>();
  private final JsonValues schemas;
  private final JsonValues keySchemas;

  /**
   * Creates the planner of a program without nodes.
   *
   * @param policy one of {@link FailurePolicy}
   * @param deadLetters topic of the dead letters
   * @param command runs Python functions, with {@code path} as the value of PYTHONPATH
   */
  public Planner(
      org.apache.spark.sql.SparkSession session, String name, String policy, String deadLetters, List<String> command,
      String path) {
    this.session = (SparkSession) session;
    program = new Program(name, FailurePolicy.of(policy), deadLetters, new PythonCode(command, path));
    schemas = new JsonValues(this.session);
    keySchemas = new JsonValues(this.session);
  }

  /** The program, with the nodes that have been made. */
  public Program program() {
    return program;
  }

  /** Makes the state of a node readable as JSON, with these columns; before the program is copied to tasks. */
  public void show(String node, Column json) {
    StructType fields = program.stateful(node).shownType();
    program.show(node, Expressions.projection(session, fields, key(node), List.of(json.cast("binary"))));
  }

  /** Fields of a node's records, as text of Spark SQL. */
  public String fields(String node) {
    return type(node).toDDL();
  }

  /** Names of the fields of the state of a node that shows it. */
  public List<String> shownNames(String node) {
    return List.of(program.stateful(node).shownType().fieldNames());
  }

  /** Names of the fields of a node's records. */
  public List<String> fieldNames(String node) {
    return List.of(type(node).fieldNames());
  }

  /** Source, whose records may be later than the clock by {@code maxAhead} milliseconds; below 0: by any number. */
  public void source(String node, String topic, KeyReader keys, ValueReader reader, long maxAhead) {
    addSource(new Steps.Source(node, reader.type(), topic, keys, reader, maxAhead), keys.kind());
    schemas.note(topic, reader);
  }

  /** Reader of keys of one of the kinds with a name. */
  public KeyReader keyReader(String kind) {
    return KeyReader.of(KeyKind.named(kind));
  }

  /** Reader of a topic's keys with a schema or fields: a struct of these, unless the schema is of single values. */
  public KeyReader keyReader(String topic, ValueReader reader) {
    boolean isSingle = reader instanceof SchemaReader schema && !schema.isRecord();
    Column[] fields = List.of(reader.type().fieldNames()).stream().map(Expressions::field).toArray(Column[]::new);
    KeyKind kind = KeyKind.ofRead(isSingle ? reader.type().fields()[0].dataType() : reader.type());
    Column key = isSingle ? fields[0] : functions.struct(fields);
    keySchemas.note(topic, reader);
    Projection column =
        Expressions.projection(session, reader.type(), KeyKind.BYTES, List.of(key.cast(kind.type()).as("key")));
    return new KeyReader(kind, reader, column);
  }

  /** Reader of values by a struct of the fields in the column {@code value}, of bytes. */
  public ValueReader reader(Column struct) {
    return ColumnReader.of(structReader(struct));
  }

  /** Reader of values that are JSON, which the struct reads as well. */
  public ValueReader jsonReader(Column struct) {
    return JsonReader.of(ColumnReader.ofJson(structReader(struct)));
  }

  private Projection structReader(Column struct) {
    return Expressions.projection(session, RAW, KeyKind.BYTES, List.of(struct));
  }

  public void filter(String node, String parent, Column condition, boolean isNegated, boolean isTable) {
    Projection projection = columns(parent, List.of(condition.cast("boolean")));
    add(new Steps.Filter(node, type(parent), projection, isNegated, isTable), parent);
  }

  /** Split, whose branches are the nodes {@code names}; the last one takes the rest if it has no condition. */
  public void split(String node, String parent, List<String> names, List<Column> conditions) {
    List<Column> asked = conditions.stream().map(each -> each.cast("boolean")).toList();
    Projection projection = columns(parent, asked);
    add(new Steps.Branches(node, type(parent), projection, conditions.size() < names.size()), parent);
    names.forEach(each -> add(new Steps.Pass(each, type(parent), true, true), node));
  }

  public void mapValues(String node, String parent, List<Column> fields, boolean isTable) {
    add(new Steps.MapValues(node, columns(parent, fields), isTable), parent);
  }

  public void flatMap(String node, String parent, Column array) {
    Projection projection = columns(parent, List.of(array));
    if (!(projection.type().fields()[0].dataType() instanceof ArrayType arrays)) {
      throw new IllegalArgumentException("flat_map needs a column of arrays, not of "
          + projection.type().fields()[0].dataType().sql());
    }
    DataType element = arrays.elementType();
    StructType type = element instanceof StructType struct ? struct : new StructType().add(VALUE, element);
    add(new Steps.FlatMap(node, type, projection, element), parent);
  }

  /** Node that gives records another key, of the kind of the node {@code like} or, if that is null, of its own. */
  public void selectKey(String node, String parent, Column column, String like) {
    KeyColumn key = keyColumn(parent, column, like == null ? null : key(like));
    add(new Steps.SelectKey(node, type(parent), key), key.kind(), parent);
  }

  /** Node without the headers {@code replaced}, and with those in {@code set}, which have the values of the columns. */
  public void withHeaders(
      String node, String parent, List<String> replaced, List<String> set, List<Column> columns) {
    List<Column> bytes = new ArrayList<>();
    for (int at = 0; at < set.size(); at++) {
      DataType type = columns(parent, List.of(columns.get(at))).type().fields()[0].dataType();
      if (type instanceof ArrayType || type instanceof StructType || type instanceof MapType) {
        throw new IllegalArgumentException("the header '%s' is a single value or bytes, not %s: use to_json(...)"
            .formatted(set.get(at), type.sql()));
      }
      boolean isBinary = type.equals(DataTypes.BinaryType);
      bytes.add(isBinary ? columns.get(at) : columns.get(at).cast("string").cast("binary"));
    }
    Projection values = bytes.isEmpty() ? null : columns(parent, bytes);
    add(new Steps.WithHeaders(node, type(parent), Set.copyOf(replaced), List.copyOf(set), values), parent);
  }

  public void merge(String node, List<String> parents) {
    Node first = program.node(parents.get(0));
    for (String each : parents) {
      if (!Steps.same(first.type, program.node(each).type) || !key(each).equals(key(parents.get(0)))) {
        throw new IllegalArgumentException("it merges '%s' (%s, key %s) with '%s' (%s, key %s): make them alike with"
            .formatted(first.name, first.type.toDDL(), key(first.name), each, program.node(each).type.toDDL(), key(each))
            + " map_values and select_key");
      }
    }
    add(new Steps.Pass(node, first.type, false, true), key(first.name), parents.toArray(String[]::new));
  }

  /** Passage through an internal topic; the node is its reader. Records without a key pass if they are kept. */
  public void repartition(String node, String parent, String topic, boolean keepsNullKeys) {
    add(new Steps.Repartition(node + " (write)", type(parent), topic, keepsNullKeys), parent);
    addInternal(node, node + " (write)", topic, key(parent), RowReader.ofRows(type(parent), keepsNullKeys));
  }

  /**
   * Passage through an internal topic to the node {@code aggregate} alone.
   *
   * @param grid windows of the aggregate; null: it has none
   * @param combines whether the topic gets what records give together; whether or not, it may have some of that
   */
  public void toAggregate(
      String node, String parent, String topic, String aggregate, List<Column> aggregates, WindowGrid grid,
      boolean combines) {
    Aggregator aggregator = aggregator(parent, aggregates);
    String write = node + " (write)";
    add(combines ? new Combine(write, type(parent), topic, aggregate, aggregator, grid)
        : new Steps.Repartition(write, type(parent), topic, false), parent);
    behind.put(node, aggregator.copy());
    addInternal(node, write, topic, key(parent), RowReader.ofRows(type(parent), aggregator));
  }

  /** Table, whose rows are removed {@code ttl} milliseconds after their last update; below 0: never. */
  public void toTable(String node, String parent, long ttl) {
    add(new ToTable(node, type(parent), ttl), parent);
  }

  /** Table that keeps former values for {@code history} milliseconds. */
  public void versionedTable(String node, String parent, long history) {
    add(new VersionedTable(node, type(parent), history), parent);
  }

  /** Stream of a table's changes; without removals where the key alone does not tell what was removed. */
  public void toStream(String node, String parent, boolean keepsRemovals) {
    add(new Steps.Pass(node, type(parent), false, keepsRemovals), parent);
  }

  /** Aggregate without windows; {@code ttl} as in {@link #toTable}. */
  public void aggregate(String node, String parent, List<Column> aggregates, long ttl) {
    add(new Aggregates.Total(node, aggregator(parent, aggregates), ttl), parent);
  }

  /** Aggregate without windows of which the last change of each key in a batch is forwarded. */
  public void lastChanges(String node, String parent, List<Column> aggregates) {
    add(new LastChanges(node, aggregator(parent, aggregates)), parent);
  }

  /** What becomes of windows that end, see {@link Aggregates.Closing}. */
  public Aggregates.Closing closing(long grace, boolean onlyFinal, boolean rejectsLate) {
    return new Aggregates.Closing(grace, onlyFinal, rejectsLate);
  }

  /** Windows of one size, see {@link WindowGrid.Multiples}. */
  public WindowGrid multiples(long size, long advance) {
    return new WindowGrid.Multiples(size, advance);
  }

  /** Windows of days, weeks, months or years, see {@link CalendarGrid}. */
  public WindowGrid calendar(String unit, int count, String zone, long offset) {
    return new CalendarGrid(unit, count, zone, offset);
  }

  public void hopping(
      String node, String parent, List<Column> aggregates, WindowGrid grid, Aggregates.Closing closing) {
    Aggregator aggregator = aggregator(parent, aggregates);
    add(grid instanceof WindowGrid.Multiples multiples && multiples.size() != multiples.advance()
        ? new SlicedWindows.Hopping(node, aggregator, multiples, closing)
        : new Aggregates.Tumbling(node, aggregator, grid, closing), parent);
  }

  public void session(String node, String parent, List<Column> aggregates, long gap, Aggregates.Closing closing) {
    add(new Aggregates.Session(node, aggregator(parent, aggregates), gap, closing), parent);
  }

  public void sliding(String node, String parent, List<Column> aggregates, long size, Aggregates.Closing closing) {
    add(new SlicedWindows.Sliding(node, aggregator(parent, aggregates), size, closing), parent);
  }

  /** Makes a windowed aggregate that forwards final results forward one early, when a condition on it becomes true. */
  public void until(String node, Column condition) {
    ((Aggregates.WindowedAggregate) program.node(node)).until(columns(node, List.of(condition.cast("boolean"))));
  }

  /** Aggregate of a table by groups other than its key, through an internal topic. */
  public void groupTotal(String node, String parent, Column group, List<Column> aggregates, String topic) {
    KeyColumn key = keyColumn(parent, group, null);
    add(new Regrouping.ByGroup(node + " (write)", type(parent), key, topic), key.kind(), parent);
    addInternal(node + " (read)", node + " (write)", topic, key.kind(), RowReader.ofPairs(RAW, type(parent)));
    Aggregator aggregator = new Aggregator(session, type(parent), key.kind(), aggregates);
    add(new Regrouping.GroupTotal(node, aggregator, type(parent)), key.kind(), node + " (read)");
  }

  /** Join with a table by the key or, with a global one, by a column if it is not null; the records keep their key. */
  public void joinTable(String node, String parent, String table, Column on, String prefix, boolean isLeft) {
    if (on == null) {
      checkKeys(node, parent, table);
    }
    KeyColumn column = on == null ? null : keyColumn(parent, on, key(table));
    StructType type = joined(parent, table, prefix);
    add(new Joins.StreamTable(node, type, program.node(table), type(parent).size(), isLeft, column), parent);
  }

  public void globalTable(String node, String topic, KeyReader keys, ValueReader reader) {
    add(new GlobalTable(node, reader.type(), topic, keys, reader), keys.kind());
    schemas.note(topic, reader);
  }

  public void joinTables(String node, String left, String right, String prefix, boolean keepsLeft, boolean keepsRight) {
    checkKeys(node, left, right);
    StructType type = joined(left, right, prefix);
    add(new Joins.TableTable(node, type, program.node(left), program.node(right), keepsLeft, keepsRight), key(left), left,
        right);
  }

  /** Join of a table's rows with those of another that a column names, through two internal topics. */
  public void joinForeign(
      String node, String left, String right, Column on, String prefix, boolean isLeft, String asks, String answers) {
    StructType type = joined(left, right, prefix);
    KeyColumn column = keyColumn(left, on, key(right));
    add(new ForeignKeys.Ask(node + " (ask)", type(left), column, asks, answers), left);
    addInternal(node + " (asked)", node + " (ask)", asks, key(right), RowReader.ofPairs(RAW, type(left)));
    add(new ForeignKeys.Partner(node + " (partner)", type, program.node(right), answers), key(right), node + " (asked)",
        right);
    addInternal(
        node + " (answered)", node + " (partner)", answers, key(left), RowReader.ofAnswers(RAW, type(right)));
    add(new ForeignKeys.Result(node, type, program.node(left), program.node(right), isLeft), key(left), node + " (answered)");
  }

  private void addInternal(String node, String writer, String topic, KeyKind key, RowReader reader) {
    Steps.Source source = new Steps.Source(node, reader.type(), topic, KeyReader.of(key), reader, -1);
    add(source, key);
    program.read(source, writer);
  }

  private void addSource(Steps.Source source, KeyKind key) {
    add(source, key);
    program.read(source);
  }

  public void joinStreams(
      String node, String left, String right, String prefix, long before, long after, long grace, boolean keepsLeft,
      boolean keepsRight, boolean rejectsLate) {
    checkKeys(node, left, right);
    StructType type = joined(left, right, prefix);
    add(new Joins.StreamStream(
            node, type, type(left), type(right), before, after, grace, keepsLeft, keepsRight, rejectsLate),
        key(left), left, right);
  }

  /** A schema of Arrow for fields as text of Spark SQL. */
  public static byte[] arrowSchema(String fields) {
    return ArrowRows.schema(StructType.fromDDL(fields)).serializeAsMessage();
  }

  /** Node that adds a field to records: one of the type in {@code result}, by a pickled function. */
  public void pythonColumn(String node, String parent, byte[] function, String result) {
    StructType field = StructType.fromDDL(result);
    add(new PythonColumns(node, type(parent), key(parent), program.python().add(function), field), parent);
  }

  /** Node that forwards the first {@code count} fields of records. */
  public void firstFields(String node, String parent, int count) {
    List<Column> fields = fieldNames(parent).subList(0, count).stream().map(Expressions::field).toList();
    mapValues(node, parent, fields, false);
  }

  /**
   * Node that processes records by a pickled function; {@code state} is null if it is not keyed, and is removed {@code
   * ttl} milliseconds after the latest record of its key; below 0: never. The first fields are those of its own results,
   * the others those of further outputs.
   */
  public void process(String node, String parent, byte[] function, List<String> fields, String state, long ttl) {
    StructType kept = state == null ? null : StructType.fromDDL(state);
    List<StructType> made = new ArrayList<>();
    fields.forEach(each -> made.add(StructType.fromDDL(each)));
    int number = program.python().add(function);
    add(new PythonProcess(node, type(parent), key(parent), number, made, kept, ttl), parent);
  }

  /** Node that forwards the results of a process for a further output. */
  public void processOutput(String node, String parent, int output) {
    PythonProcess process = (PythonProcess) program.node(parent);
    Steps.Pass pass = new Steps.Pass(node, process.typeOf(output), false, true);
    add(pass, key(parent), new String[0]);
    process.lead(output, pass);
  }

  public void deduplicate(String node, String parent, Column id, long within) {
    Projection projection = columns(parent, List.of(id));
    add(new Deduplicate(node, type(parent), projection, within), parent);
  }

  /** Sink; {@code topic} or {@code chosen} is null; {@code value} is the value's bytes. */
  public void sink(String node, String parent, String topic, Column chosen, KeyWriter keys, Column value) {
    boolean isBinary = columns(parent, List.of(value)).type().fields()[0].dataType().equals(DataTypes.BinaryType);
    Projection bytes = columns(parent, List.of(isBinary ? value : value.cast("string").cast("binary")));
    sink(node, parent, topic, chosen, keys, bytes, new ColumnWriter());
  }

  /** Sink whose values are JSON objects of all fields; {@code value} makes the bytes of one. */
  public void jsonSink(String node, String parent, String topic, Column chosen, KeyWriter keys, Column value) {
    StructType type = type(parent);
    Projection spark = Expressions.projection(session, type, KeyKind.BYTES, List.of(value.cast("binary")));
    sink(node, parent, topic, chosen, keys, null, new JsonWriter(type, spark));
  }

  /** Sink whose values have a schema, which Spark's rules for assignments fit the fields to. */
  public void sink(String node, String parent, String topic, Column chosen, KeyWriter keys, SchemaSerde serde) {
    StructType type = type(parent);
    SchemaWriter writer = serde.writer(topic, type);
    KeyKind kind = key(parent);
    Dataset<Row> frame = Expressions.frame(session, type, kind);
    Column[] fields = Arrays.stream(type.fields()).map(each -> exact(each, writer.type())).toArray(Column[]::new);
    Projection fitted = Expressions.projection(frame, kind, frame.select(fields).to(writer.type().asNullable()));
    sink(node, parent, topic, chosen, keys, fitted, writer);
    schemas.note(topic, writer);
  }

  /** A field as a decimal or whole number of the schema; it fails for a value that Spark would round. */
  private static Column exact(StructField field, StructType wanted) {
    Column own = Expressions.field(field.name());
    DataType type = wanted.getFieldIndex(field.name()).isEmpty() ? null : wanted.apply(field.name()).dataType();
    boolean mayRound = field.dataType() instanceof NumericType && !field.dataType().equals(type)
        && (type instanceof DecimalType || type instanceof IntegralType);
    if (!mayRound) {
      return own;
    }
    Column made = own.try_cast(type);
    Column failure = functions.raise_error(functions.concat(
        functions.lit("the field %s is a %s, which cannot be ".formatted(field.name(), type.simpleString())),
        own.cast(DataTypes.StringType), functions.lit(" without loss")));
    return functions.when(made.try_cast(field.dataType()).eqNullSafe(own), made).otherwise(failure).as(field.name());
  }

  private void sink(
      String node, String parent, String topic, Column chosen, KeyWriter keys, Projection value, ValueWriter writer) {
    Projection choice = chosen == null ? null : columns(parent, List.of(chosen.cast("string")));
    add(new Steps.Sink(node, type(parent), topic, choice, value, writer, keys), parent);
  }

  /**
   * Writer of a node's keys in a kind with a name, or if that is null, as they are or, where only the program can read
   * them, as text: JSON for a struct. Null: they need none.
   */
  public KeyWriter keyWriter(String node, String kind) {
    KeyKind from = key(node);
    KeyKind to = kind == null ? from.isTyped() ? KeyKind.TEXT : from : KeyKind.named(kind);
    if (to.equals(from)) {
      return null;
    }
    Column key = functions.col("key");
    Column text = from.type() instanceof StructType ? functions.to_json(key, JsonValues.OPTIONS) : key;
    Projection column = Expressions.projection(session, new StructType(), from, List.of(text.cast(to.type())));
    return new KeyWriter(column, (topic, row) -> to.write(row));
  }

  /** Writer of a node's keys by a schema, to a topic or, if that is null, to the topic that each record chooses. */
  public KeyWriter keyWriter(String node, String topic, SchemaSerde serde) {
    KeyKind from = key(node);
    SchemaWriter writer = serde.writer(topic, from.type());
    Dataset<Row> frame = Expressions.frame(session, new StructType(), from);
    Projection column = writer.isRecord()
        ? Expressions.projection(frame, from, frame.select("key.*").to(writer.type().asNullable()))
        : Expressions.projection(
            frame, from, frame.select(functions.col("key").cast(writer.type().fields()[0].dataType())));
    keySchemas.note(topic, writer);
    return new KeyWriter(column, writer);
  }

  /** The bytes of a key of a topic from its JSON, for tests; the JSON where the keys have no schema. */
  public byte[] encodedKey(String topic, byte[] json) {
    return keySchemas.encodedKey(topic, json);
  }

  /** A key of a topic as JSON, for tests; null where the keys have no schema. */
  public byte[] decodedKey(String topic, byte[] key) {
    return keySchemas.decodedKey(topic, key);
  }

  /** The bytes by which a node knows a key, from its JSON. */
  public byte[] keyBytes(String node, byte[] json) {
    KeyKind kind = key(node);
    Column object = functions.concat(
        functions.lit("{\"key\":"), functions.col(VALUE).cast("string"), functions.lit("}"));
    Column key = functions.from_json(object, new StructType().add("key", kind.type()), JsonValues.OPTIONS);
    Projection column = Expressions.projection(session, RAW, KeyKind.BYTES, List.of(key.getField("key")));
    byte[] bytes = kind.write(column.apply(new GenericInternalRow(new Object[] {json})));
    if (bytes == null) {
      throw new IllegalArgumentException("the key is null");
    }
    return bytes;
  }

  /** The bytes of a value of a topic from its JSON, for tests; as they are where its values have no schema. */
  public byte[] encoded(String topic, byte[] json) {
    return schemas.encoded(topic, json);
  }

  /** A value of a topic as JSON, for tests; as it is where its values have no schema. */
  public byte[] decoded(String topic, byte[] value) {
    return schemas.decoded(topic, value);
  }

  private Projection columns(String parent, List<Column> columns) {
    return Expressions.projection(session, type(parent), key(parent), columns);
  }

  private Aggregator aggregator(String parent, List<Column> aggregates) {
    Aggregator made = behind.get(parent);
    return made != null ? made : new Aggregator(session, type(parent), key(parent), aggregates);
  }

  /** Kind of a node's keys. */
  public String keyKind(String node) {
    return key(node).name();
  }

  /** A key column of a kind or, if that is null, of the kind of its type. */
  private KeyColumn keyColumn(String parent, Column column, KeyKind wanted) {
    Dataset<Row> frame = Expressions.frame(session, type(parent), key(parent));
    DataType type = frame.select(column).schema().fields()[0].dataType();
    KeyKind kind = wanted != null ? wanted : KeyKind.ofComputed(type);
    boolean isJson = type instanceof StructType && !kind.isTyped();
    Column made = isJson ? functions.to_json(column, JsonValues.OPTIONS) : column.cast(kind.type());
    return new KeyColumn(columns(parent, List.of(made)), kind);
  }

  private void checkKeys(String node, String left, String right) {
    if (!key(left).equals(key(right))) {
      throw new IllegalArgumentException("it joins '%s', whose keys are %s, with '%s', whose keys are %s"
          .formatted(left, key(left), right, key(right)));
    }
  }

  private KeyKind key(String node) {
    return keys.get(node);
  }

  private StructType type(String node) {
    return program.node(node).type;
  }

  private StructType joined(String left, String right, String prefix) {
    return Joins.joined(type(left), type(right), prefix);
  }

  /** Adds a node whose records keep the keys of its parent. */
  private void add(Node node, String parent) {
    add(node, key(parent), parent);
  }

  private void add(Node node, KeyKind key, String... parents) {
    program.add(node, parents);
    keys.put(node.name, key);
  }
}
