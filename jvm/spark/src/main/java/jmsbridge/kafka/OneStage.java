package jmsbridge.kafka;

import java.util.Set;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.collection.Iterator;

/**
 * Check that a plan writes the rows of a record before it reads the next record, which {@link RecordSink} needs.
 *
 * <p>Everything else, such as a sort, a join, an aggregation, another partitioning or a Python function, would collect
 * rows or move them to another task.
 */
public final class OneStage {
  private static final Set<String> STEPS =
      Set.of("Project", "Filter", "Generate", "SubqueryAlias", "StreamingRelationV2");
  private static final Set<String> PYTHON = Set.of("PythonUDF", "PythonUDAF", "PythonUDTF");

  private OneStage() {}

  /** Throws IllegalArgumentException, with the name of the step, for a plan that may keep rows back. */
  public static void check(Dataset<Row> frame) {
    check(frame.queryExecution().analyzed());
  }

  private static void check(LogicalPlan plan) {
    if (!STEPS.contains(plan.nodeName())) {
      throw refused("the step " + plan.nodeName());
    }
    for (Iterator<Expression> expressions = plan.expressions().iterator(); expressions.hasNext(); ) {
      check(expressions.next());
    }
    for (Iterator<LogicalPlan> children = plan.children().iterator(); children.hasNext(); ) {
      check(children.next());
    }
  }

  private static void check(Expression expression) {
    if (PYTHON.contains(expression.getClass().getSimpleName())) {
      throw refused("a Python function");
    }
    for (Iterator<Expression> children = expression.children().iterator(); children.hasNext(); ) {
      check(children.next());
    }
  }

  private static IllegalArgumentException refused(String step) {
    return new IllegalArgumentException("the plan has " + step
        + ", which may keep rows back: the sink needs each row before the next journal record is read");
  }
}
