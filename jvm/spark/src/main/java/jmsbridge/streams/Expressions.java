package jmsbridge.streams;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Analysis of Columns over the fields of records, by Spark. */
final class Expressions {
  private static final StructType HEADERS =
      new StructType().add("key", DataTypes.StringType).add("value", DataTypes.BinaryType);

  private Expressions() {}

  /** Projection of a record with these fields to the columns. */
  static Projection projection(SparkSession session, StructType fields, KeyKind key, List<Column> columns) {
    Dataset<Row> frame = frame(session, fields, key);
    org.apache.spark.sql.Dataset<Row> selected = frame.select(columns.toArray(Column[]::new));
    checkRecordByRecord(((Dataset<Row>) selected).queryExecution().analyzed());
    return projection(frame, key, selected);
  }

  /** Refuses what Spark computes of several records, or into several, where each record is computed by itself. */
  private static void checkRecordByRecord(LogicalPlan plan) {
    if (plan instanceof Aggregate) {
      throw new IllegalArgumentException(
          "an aggregate such as sum belongs in aggregate(...), behind group_by or group_by_key");
    }
    if (plan instanceof Window) {
      throw new IllegalArgumentException(
          "a window function sees one record alone here: use windowed_by and aggregate(...)");
    }
    if (plan instanceof Generate) {
      throw new IllegalArgumentException("explode makes several records of one: use flat_map");
    }
    CollectionConverters.asJava(plan.children()).forEach(Expressions::checkRecordByRecord);
  }

  /** Projection of a record with keys of a kind to what is selected of a frame of such records. */
  static Projection projection(
      Dataset<Row> frame, KeyKind key, org.apache.spark.sql.Dataset<Row> selected) {
    LogicalPlan plan = optimised((Dataset<Row>) selected);
    List<Expression> expressions = new ArrayList<>();
    if (plan instanceof Project project) {
      Map<ExprId, Expression> computed = computed(project.child());
      CollectionConverters.asJava(project.projectList())
          .forEach(each -> expressions.add(inlined((Expression) each, computed)));
    } else {
      CollectionConverters.asJava(plan.output()).forEach(expressions::add);
    }
    return new Projection(attributes(frame), key, seq(expressions), selected.schema());
  }

  /** The column of a field, whatever its name. */
  static Column field(String name) {
    return functions.col("`%s`".formatted(name.replace("`", "``")));
  }

  /** An empty frame with a record's columns; a field of the value hides one about the record. */
  static Dataset<Row> frame(SparkSession session, StructType fields, KeyKind key) {
    JavaSparkContext context = JavaSparkContext.fromSparkContext(session.sparkContext());
    // Spark computes what it finds in an empty local relation at once; in this one it cannot see that it is empty.
    Dataset<Row> all = (Dataset<Row>) session.createDataFrame(context.<Row>emptyRDD(), columns(fields, key));
    return all;
  }

  static LogicalPlan optimised(Dataset<Row> frame) {
    return frame.sparkSession().sessionState().optimizer().execute(frame.queryExecution().analyzed());
  }

  /**
   * Expressions that a plan computes below another one, by their ids. Spark's optimiser moves there what an expression
   * such as {@code nullif} or {@code count_if} uses twice.
   */
  static Map<ExprId, Expression> computed(LogicalPlan plan) {
    Map<ExprId, Expression> fields = new HashMap<>();
    if (plan instanceof Project project) {
      Map<ExprId, Expression> below = computed(project.child());
      for (NamedExpression column : CollectionConverters.asJava(project.projectList())) {
        if (column instanceof Alias alias) {
          fields.put(alias.exprId(), inlined(alias.child(), below));
        } else if (below.containsKey(column.exprId())) {
          fields.put(column.exprId(), below.get(column.exprId()));
        }
      }
    }
    return fields;
  }

  /** An expression with what is computed below in place of its names. */
  static Expression inlined(Expression expression, Map<ExprId, Expression> computed) {
    if (computed.isEmpty()) {
      return expression;
    }
    if (expression instanceof AttributeReference name && computed.containsKey(name.exprId())) {
      return computed.get(name.exprId());
    }
    return (Expression) expression.mapChildren(child -> inlined((Expression) child, computed));
  }

  static Seq<Attribute> attributes(Dataset<Row> frame) {
    return frame.queryExecution().analyzed().output();
  }

  /** Columns of a record: the fields of its value, then those about it, whose names are changed where they clash. */
  private static StructType columns(StructType fields, KeyKind key) {
    StructType about = new StructType()
        .add("key", key.type())
        .add("timestamp", DataTypes.TimestampType)
        .add("headers", DataTypes.createArrayType(HEADERS))
        .add("topic", DataTypes.StringType)
        .add("partition", DataTypes.IntegerType)
        .add("offset", DataTypes.LongType);
    StructType all = fields;
    for (StructField field : about.fields()) {
      boolean isHidden = List.of(fields.fieldNames()).contains(field.name());
      all = all.add(isHidden ? field.name() + " of the record" : field.name(), field.dataType());
    }
    return all;
  }

  static <T> Seq<T> seq(List<T> list) {
    return scala.collection.immutable.List.from(CollectionConverters.asScala(list));
  }
}
