package jmsbridge.streams;

import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.zip.CRC32;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.DeclarativeAggregate;
import org.apache.spark.sql.catalyst.planning.PhysicalAggregation$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Aggregate functions of Spark over the records of a group, one record at a time. */
final class Aggregator implements Serializable {
  private static final long serialVersionUID = 1L;

  private final Seq<Attribute> input;
  private final RecordFields fields;
  private final Seq<Attribute> buffer;
  private final Seq<Attribute> otherBuffer;
  private final Seq<Expression> initial;
  private final Seq<Expression> updates;
  private final Seq<Expression> merges;
  private final Seq<Expression> results;
  private final Seq<Attribute> resultNames;
  private final Seq<Expression> columns;
  private final StructType type;
  private final RowCheck buffers;
  private final int fingerprint;
  private transient UnsafeRow start;
  private transient UnsafeProjection update;
  private transient UnsafeProjection merge;
  private transient UnsafeProjection result;
  private transient UnsafeProjection last;
  private transient JoinedRow joined;

  /**
   * Plans aggregate columns over records with these fields.
   *
   * @throws IllegalArgumentException for a function that Spark cannot compute record by record in a row of fixed fields
   */
  Aggregator(SparkSession session, StructType fieldTypes, KeyKind key, List<Column> aggregates) {
    Dataset<Row> frame = Expressions.frame(session, fieldTypes, key);
    Column[] others = aggregates.subList(1, aggregates.size()).toArray(Column[]::new);
    Dataset<Row> grouped =
        SummaryFunctions.using(session, () -> (Dataset<Row>) frame.groupBy().agg(aggregates.get(0), others));
    LogicalPlan plan = Expressions.optimised(grouped);
    var parts = PhysicalAggregation$.MODULE$.unapply(plan);
    if (parts.isEmpty()) {
      throw new IllegalArgumentException("an aggregate is a column of aggregate functions, such as sum(amount)");
    }
    List<Expression> initialValues = new ArrayList<>();
    List<Expression> updateValues = new ArrayList<>();
    List<Expression> mergeValues = new ArrayList<>();
    List<Expression> resultValues = new ArrayList<>();
    List<Attribute> kept = new ArrayList<>();
    List<Attribute> otherBuffers = new ArrayList<>();
    List<Attribute> named = new ArrayList<>();
    Map<ExprId, Expression> computed = Expressions.computed(parts.get()._4());
    for (AggregateExpression each : CollectionConverters.asJava(parts.get()._2())) {
      if (!(each.aggregateFunction() instanceof DeclarativeAggregate function) || each.isDistinct()) {
        throw new IllegalArgumentException("%s cannot be aggregated record by record; use functions such as count, sum,"
            .formatted(each.sql()) + " avg, min, max, first, last, min_by, max_by, bool_or, collect_list(field, 100), count_distinct(field, 100), approx_count_distinct");
      }
      List<Attribute> own = new ArrayList<>();
      CollectionConverters.asJava(function.aggBufferAttributes()).forEach(own::add);
      CollectionConverters.asJava(function.inputAggBufferAttributes()).forEach(otherBuffers::add);
      initialValues.addAll(CollectionConverters.asJava(function.initialValues()));
      int at = 0;
      for (Expression one : CollectionConverters.asJava(function.updateExpressions())) {
        Attribute unchanged = own.get(at++);
        Expression filtered = each.filter().isEmpty() ? one : new If(each.filter().get(), one, (Expression) unchanged);
        updateValues.add(Expressions.inlined(filtered, computed));
      }
      mergeValues.addAll(CollectionConverters.asJava(function.mergeExpressions()));
      resultValues.add(function.evaluateExpression());
      kept.addAll(own);
      named.add(each.resultAttribute());
    }
    input = Expressions.attributes(frame);
    buffer = Expressions.seq(kept);
    buffers = new RowCheck(new StructType(
        kept.stream().map(each -> new StructField(each.name(), each.dataType(), true, Metadata.empty()))
            .toArray(StructField[]::new)));
    otherBuffer = Expressions.seq(otherBuffers);
    initial = Expressions.seq(initialValues);
    updates = Expressions.seq(updateValues);
    merges = Expressions.seq(mergeValues);
    results = Expressions.seq(resultValues);
    resultNames = Expressions.seq(named);
    List<Expression> last = new ArrayList<>();
    CollectionConverters.asJava(parts.get()._3()).forEach(each -> last.add((Expression) each));
    columns = Expressions.seq(last);
    fields = new RecordFields(input, key, updates);
    type = grouped.schema();
    StringBuilder functions = new StringBuilder();
    CollectionConverters.asJava(parts.get()._2()).forEach(each -> functions.append(each.sql()).append('\n'));
    kept.forEach(each -> functions.append(each.dataType().catalogString()).append('\n'));
    CRC32 checksum = new CRC32();
    checksum.update(functions.toString().getBytes(StandardCharsets.UTF_8));
    fingerprint = (int) checksum.getValue();
  }

  private Aggregator(Aggregator other) {
    input = other.input;
    fields = other.fields;
    buffer = other.buffer;
    otherBuffer = other.otherBuffer;
    initial = other.initial;
    updates = other.updates;
    merges = other.merges;
    results = other.results;
    resultNames = other.resultNames;
    columns = other.columns;
    type = other.type;
    fingerprint = other.fingerprint;
    buffers = other.buffers;
  }

  /** A copy, for another node of the program. */
  Aggregator copy() {
    return new Aggregator(this);
  }

  /** Number of what buffers consist of; that of other functions, or over other columns, is another one. */
  int fingerprint() {
    return fingerprint;
  }

  /** Fields of a result. */
  StructType type() {
    return type;
  }

  /** Number of records that a record stands for. */
  static long count(StreamRecord record) {
    return record.value() instanceof Partial partial ? partial.records : 1;
  }

  /** Check of buffers that were kept. */
  RowCheck buffers() {
    return buffers;
  }

  /** The buffer of a group without records. */
  UnsafeRow empty() {
    generate();
    return start;
  }

  /** The buffer with one more record. */
  UnsafeRow add(UnsafeRow before, StreamRecord record) {
    if (record.value() instanceof Partial partial) {
      return merge(before, partial.buffer);
    }
    generate();
    try {
      UnsafeRow after = update.apply(joined.apply(before, fields.of(record, record.value())));
      // A large buffer often stays as it is, as by a record that is not among the highest ones.
      return after.equals(before) ? before : after.copy();
    } catch (Exception failure) {
      throw new EvaluationException(failure);
    } catch (StackOverflowError deep) {
      throw new EvaluationException(deep);
    }
  }

  /** The buffer of the records of two buffers. */
  UnsafeRow merge(UnsafeRow one, UnsafeRow other) {
    generate();
    try {
      return merge.apply(joined.apply(one, other)).copy();
    } catch (Exception failure) {
      throw new EvaluationException(failure);
    } catch (StackOverflowError deep) {
      throw new EvaluationException(deep);
    }
  }

  /** The result of a buffer. */
  UnsafeRow result(UnsafeRow of) {
    generate();
    try {
      return last.apply(result.apply(of)).copy();
    } catch (Exception failure) {
      throw new EvaluationException(failure);
    } catch (StackOverflowError deep) {
      throw new EvaluationException(deep);
    }
  }

  private void generate() {
    if (start == null) {
      joined = new JoinedRow();
      start = Projection.generate(initial, Expressions.seq(List.of())).apply(InternalRow.empty()).copy();
      update = Projection.generate(updates, concat(buffer, input));
      merge = Projection.generate(merges, concat(buffer, otherBuffer));
      result = Projection.generate(results, buffer);
      last = Projection.generate(columns, resultNames);
    }
  }

  private static Seq<Attribute> concat(Seq<Attribute> one, Seq<Attribute> other) {
    List<Attribute> all = new ArrayList<>(CollectionConverters.asJava(one));
    all.addAll(CollectionConverters.asJava(other));
    return Expressions.seq(all);
  }
}
