package jmsbridge.streams;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.datasketches.kll.KllDoublesSketch;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.expressions.RowOrdering$;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.NumericType;
import scala.Function1;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Names under which aggregates of a topology use a {@link Summary}, some of them of Spark's own functions. */
final class SummaryFunctions {
  private static final int MOST_VALUES = 10_000;
  private static final int DEFAULT_COUNTERS = 12;
  private static final int LEAST_COUNTERS = 4;
  private static final int MOST_COUNTERS = 16;
  private static final double ERROR_OF_ONE_COUNTER = 1.04;
  private static final int DEFAULT_ACCURACY = 100;
  private static final int MOST_ACCURACY = 1000;
  private static final int LEAST_SKETCH = 8;

  private interface Maker {
    Summary of(Call call);
  }

  private static final Map<String, Maker> MAKERS = Map.of(
      "collect_list", call -> new ValueLists.First(new ValueLists.Element(call.type()), call.most()),
      "collect_set", call -> new ValueLists.Distinct(call.ordered(), call.most()),
      "count_distinct", call -> new ValueLists.Different(call.ordered(), call.most()),
      "top", call -> new ValueLists.Ranked(call.ordered(), call.most(), false),
      "bottom", call -> new ValueLists.Ranked(call.ordered(), call.most(), true),
      "approx_count_distinct", call -> new Sketches.DistinctCount(call.type(), call.counters()),
      "approx_percentile", Call::quantiles);

  private static final Map<String, String> EXAMPLES = Map.of(
      "collect_list", "(item, 100), which keeps the first 100 values",
      "collect_set", "(item, 100), which keeps the first 100 values that differ",
      "count_distinct", "(item, 1000), the number of the values that differ, up to 1000",
      "top", "(amount, 3), the three largest values",
      "bottom", "(amount, 3), the three smallest values",
      "approx_count_distinct", "(item), or (item, 0.01) for a standard error of 1 %",
      "approx_percentile", "(amount, 0.99), or (amount, 0.99, 200) for an error of a 200th of all ranks");

  private SummaryFunctions() {}

  /** What a supplier gives while the session knows the functions. */
  static <T> T using(SparkSession session, Supplier<T> supplier) {
    FunctionRegistry registry = session.sessionState().functionRegistry();
    Map<FunctionIdentifier, Option<Tuple2<ExpressionInfo, Function1<Seq<Expression>, Expression>>>> before =
        new LinkedHashMap<>();
    MAKERS.forEach((name, maker) -> {
      FunctionIdentifier id = FunctionRegistry$.MODULE$.builtinFunctionIdentifier(name);
      before.put(id, registry.lookupFunctionEntry(id));
      registry.registerFunction(id, given -> new Call(name, CollectionConverters.asJava(given)).made(maker), "built-in");
    });
    try {
      return supplier.get();
    } finally {
      before.forEach((id, entry) -> {
        registry.dropFunction(id);
        if (entry.isDefined()) {
          registry.registerFunction(id, entry.get()._1(), entry.get()._2());
        }
      });
    }
  }

  /** A call of a function in the expression of an aggregate. */
  private record Call(String name, List<Expression> given) {
    Expression made(Maker maker) {
      boolean mayLackConstant = name.equals("approx_count_distinct");
      int most = name.startsWith("approx") ? mayLackConstant ? 2 : 3 : 2;
      if (given.isEmpty() || given.size() > most || (given.size() < 2 && !mayLackConstant)) {
        throw refusal("is called with %d arguments".formatted(given.size()));
      }
      return new SummaryAggregate(name, maker.of(this), given.get(0));
    }

    DataType type() {
      return given.get(0).dataType();
    }

    ValueLists.Element ordered() {
      if (!RowOrdering$.MODULE$.isOrderable(type())) {
        throw refusal("cannot compare values of the type " + type().sql());
      }
      return new ValueLists.Element(type());
    }

    int most() {
      double most = constant(1);
      if (most < 1 || most > MOST_VALUES || most != Math.rint(most)) {
        throw refusal("keeps a whole number of values from 1 to %,d, not %s".formatted(MOST_VALUES, given.get(1).sql()));
      }
      return (int) most;
    }

    int counters() {
      if (given.size() == 1) {
        return DEFAULT_COUNTERS;
      }
      double error = constant(1);
      int size = LEAST_COUNTERS;
      while (size <= MOST_COUNTERS && ERROR_OF_ONE_COUNTER / Math.sqrt(1 << size) > error) {
        size++;
      }
      if (size > MOST_COUNTERS || error >= 1) {
        throw refusal("takes a standard error from 0.005 to 1, not " + given.get(1).sql());
      }
      return size;
    }

    Summary quantiles() {
      if (!(type() instanceof NumericType)) {
        throw refusal("is of numbers, not of " + type().sql());
      }
      boolean isArray = given.get(1).dataType() instanceof ArrayType;
      double[] ranks = isArray ? constants(1) : new double[] {constant(1)};
      if (ranks.length == 0 || Arrays.stream(ranks).anyMatch(each -> !(each >= 0 && each <= 1))) {
        throw refusal("takes ranks from 0 to 1, not " + given.get(1).sql());
      }
      double accuracy = given.size() == 2 ? DEFAULT_ACCURACY : constant(2);
      if (!(accuracy >= 1 && accuracy <= MOST_ACCURACY)) {
        throw refusal("takes an accuracy from 1 to %,d, not %s".formatted(MOST_ACCURACY, given.get(2).sql()));
      }
      int size = LEAST_SKETCH;
      while (KllDoublesSketch.getNormalizedRankError(size, false) > 1 / accuracy) {
        size++;
      }
      return new Sketches.Quantiles(ranks, isArray, size);
    }

    private double constant(int at) {
      Object value = value(at);
      if (!(given.get(at).dataType() instanceof NumericType)) {
        throw refusal("needs a number in place of " + given.get(at).sql());
      }
      return Sketches.number(value);
    }

    private double[] constants(int at) {
      DataType element = ((ArrayType) given.get(at).dataType()).elementType();
      ArrayData values = (ArrayData) value(at);
      double[] found = new double[values.numElements()];
      for (int each = 0; each < found.length; each++) {
        if (!(element instanceof NumericType) || values.isNullAt(each)) {
          throw refusal("needs numbers in place of " + given.get(at).sql());
        }
        found[each] = Sketches.number(values.get(each, element));
      }
      return found;
    }

    private Object value(int at) {
      Object value = given.get(at).foldable() ? given.get(at).eval(InternalRow.empty()) : null;
      if (value == null) {
        throw refusal("needs a constant in place of " + given.get(at).sql());
      }
      return value;
    }

    private IllegalArgumentException refusal(String why) {
      return new IllegalArgumentException("%s %s: write %s%s".formatted(name, why, name, EXAMPLES.get(name)));
    }
  }
}
