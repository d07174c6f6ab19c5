package jmsbridge.streams;

import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection$;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

/** Expressions over a record, computed by code that Spark generates. */
final class Projection implements Serializable {
  private static final long serialVersionUID = 1L;

  private final Seq<Attribute> input;
  private final Seq<Expression> expressions;
  private final StructType type;
  private final RecordFields fields;
  private transient UnsafeProjection generated;

  Projection(Seq<Attribute> input, KeyKind key, Seq<Expression> expressions, StructType type) {
    this.input = input;
    this.expressions = expressions;
    this.type = type;
    fields = new RecordFields(input, key, expressions);
  }

  StructType type() {
    return type;
  }

  /** The result for a record with this value; the row is used again at the next call. */
  UnsafeRow apply(StreamRecord record, InternalRow value) {
    if (generated == null) {
      generated = generate(expressions, input);
    }
    try {
      return generated.apply(fields.of(record, value));
    } catch (Exception failure) {
      throw new EvaluationException(failure);
    } catch (StackOverflowError deep) {
      throw new EvaluationException(deep);
    }
  }

  /** The result for a value alone; the row is used again at the next call. */
  UnsafeRow apply(InternalRow value) {
    return apply(StreamRecord.of(null, value, 0), value);
  }

  static UnsafeProjection generate(Seq<Expression> expressions, Seq<Attribute> input) {
    UnsafeProjection made = UnsafeProjection$.MODULE$.create(expressions, input);
    made.initialize(0);
    return made;
  }
}
