package jmsbridge.streams;

import java.util.List;
import java.util.Objects;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.ApplyFunctionExpression;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.DeclarativeAggregate;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Metadata;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Aggregate function of Spark that keeps a {@link Summary} of the values of an expression. */
final class SummaryAggregate extends DeclarativeAggregate {
  private static final long serialVersionUID = 1L;
  private static final int FIELDS = 3;

  private final String name;
  private final Summary summary;
  private final Expression value;
  private final AttributeReference kept;

  SummaryAggregate(String name, Summary summary, Expression value) {
    this.name = name;
    this.summary = summary;
    this.value = value;
    kept = new AttributeReference(
        "kept", summary.keptType(), true, Metadata.empty(), NamedExpression.newExprId(), Expressions.seq(List.of()));
  }

  /** The steps of a summary, as functions that Spark calls. */
  private enum Step {
    ADD,
    MERGE,
    RESULT
  }

  private record Call(Step step, Summary summary, DataType[] inputTypes, DataType resultType)
      implements ScalarFunction<Object> {
    private static final long serialVersionUID = 1L;

    @Override
    public String name() {
      return "summary";
    }

    @Override
    public Object produceResult(InternalRow input) {
      Object one = input.get(0, inputTypes[0]);
      Object other = step == Step.RESULT ? null : input.get(1, inputTypes[1]);
      return switch (step) {
        case ADD -> other == null ? one : summary.add(one, other);
        case MERGE -> one == null ? other : other == null ? one : summary.merge(one, other);
        case RESULT -> summary.result(one);
      };
    }
  }

  private Expression call(Step step, DataType result, Expression... given) {
    DataType[] types = List.of(given).stream().map(Expression::dataType).toArray(DataType[]::new);
    return new ApplyFunctionExpression(new Call(step, summary, types, result), Expressions.seq(List.of(given)));
  }

  @Override
  public Seq<Expression> initialValues() {
    return Expressions.seq(List.of(new Literal(null, summary.keptType())));
  }

  @Override
  public Seq<Expression> updateExpressions() {
    return Expressions.seq(List.of(call(Step.ADD, summary.keptType(), kept, value)));
  }

  @Override
  public Seq<Expression> mergeExpressions() {
    Expression other = CollectionConverters.asJava(inputAggBufferAttributes()).get(0);
    return Expressions.seq(List.of(call(Step.MERGE, summary.keptType(), kept, other)));
  }

  @Override
  public Expression evaluateExpression() {
    return call(Step.RESULT, summary.type(), kept);
  }

  @Override
  public Seq<AttributeReference> aggBufferAttributes() {
    return Expressions.seq(List.of(kept));
  }

  @Override
  public Seq<Expression> children() {
    return Expressions.seq(List.of(value));
  }

  @Override
  public Expression withNewChildrenInternal(IndexedSeq<Expression> children) {
    return new SummaryAggregate(name, summary, CollectionConverters.asJava(children).get(0));
  }

  @Override
  public DataType dataType() {
    return summary.type();
  }

  @Override
  public boolean nullable() {
    return true;
  }

  @Override
  public String prettyName() {
    return name;
  }

  @Override
  public boolean canEqual(Object that) {
    return that instanceof SummaryAggregate;
  }

  @Override
  public boolean equals(Object that) {
    return that instanceof SummaryAggregate other && name.equals(other.name) && summary.equals(other.summary)
        && value.equals(other.value);
  }

  @Override
  public int hashCode() {
    return Objects.hash(name, summary, value);
  }

  @Override
  public int productArity() {
    return FIELDS;
  }

  @Override
  public Object productElement(int at) {
    return at == 0 ? name : at == 1 ? summary : value;
  }
}
