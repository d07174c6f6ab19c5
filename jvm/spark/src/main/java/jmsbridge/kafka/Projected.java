package jmsbridge.kafka;

import java.util.List;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.classic.SparkSession;
import scala.jdk.javaapi.CollectionConverters;

/** Projections over a frame, which Spark analyses all at once: a frame after each of them would be analysed each time. */
public final class Projected {
  private final SparkSession session;
  private LogicalPlan plan;

  /** No projection yet over the frame. */
  public Projected(Dataset<Row> frame) {
    session = frame.sparkSession();
    plan = frame.queryExecution().analyzed();
  }

  /** Adds a projection, as {@code Dataset.select} does. */
  public void select(List<Column> columns) {
    List<NamedExpression> named =
        columns.stream().map(column -> ExpressionUtils.toNamed(session.expression(column))).toList();
    plan = new Project(scala.collection.immutable.List.from(CollectionConverters.asScala(named)), plan);
  }

  /** The frame that they make; throws an {@code AnalysisException} that names a column which is not there. */
  public Dataset<Row> frame() {
    return Dataset.ofRows(session, plan);
  }
}
