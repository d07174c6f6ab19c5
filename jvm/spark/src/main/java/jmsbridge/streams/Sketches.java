package jmsbridge.streams;

import org.apache.datasketches.hll.HllSketch;
import org.apache.datasketches.hll.TgtHllType;
import org.apache.datasketches.hll.Union;
import org.apache.datasketches.kll.KllDoublesSketch;
import org.apache.datasketches.memory.Memory;
import org.apache.datasketches.quantilescommon.QuantileSearchCriteria;
import org.apache.spark.sql.catalyst.expressions.XxHash64Function;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;

/** Estimates of values, by sketches of Apache DataSketches. */
final class Sketches {
  private static final TgtHllType KIND = TgtHllType.HLL_4;
  private static final long SEED = 42;

  private Sketches() {}

  /** Number of the values that differ, by a HyperLogLog sketch of 2 to the power of {@code size} counters. */
  record DistinctCount(DataType element, int size) implements Summary {
    private static final long serialVersionUID = 1L;

    @Override
    public DataType keptType() {
      return DataTypes.BinaryType;
    }

    @Override
    public DataType type() {
      return DataTypes.LongType;
    }

    @Override
    public Object add(Object kept, Object value) {
      HllSketch sketch = kept == null ? new HllSketch(size, KIND) : HllSketch.heapify((byte[]) kept);
      sketch.update(XxHash64Function.hash(normal(value), element, SEED));
      return sketch.toCompactByteArray();
    }

    @Override
    public Object merge(Object one, Object other) {
      Union union = new Union(size);
      union.update(HllSketch.heapify((byte[]) one));
      union.update(HllSketch.heapify((byte[]) other));
      return union.getResult(KIND).toCompactByteArray();
    }

    @Override
    public Object result(Object kept) {
      return kept == null ? 0L : Math.round(HllSketch.heapify((byte[]) kept).getEstimate());
    }

    /** Gives equal numbers equal bits. */
    private static Object normal(Object value) {
      if (value instanceof Double number) {
        return number == 0 ? 0.0 : number.isNaN() ? Double.NaN : number;
      }
      if (value instanceof Float number) {
        return number == 0 ? 0.0f : number.isNaN() ? Float.NaN : number;
      }
      return value;
    }
  }

  /** Values of some ranks from 0 to 1, by a KLL sketch; an array of them unless there is only one. */
  record Quantiles(double[] ranks, boolean isArray, int size) implements Summary {
    private static final long serialVersionUID = 1L;

    @Override
    public DataType keptType() {
      return DataTypes.BinaryType;
    }

    @Override
    public DataType type() {
      return isArray ? DataTypes.createArrayType(DataTypes.DoubleType, false) : DataTypes.DoubleType;
    }

    @Override
    public Object add(Object kept, Object value) {
      double number = number(value);
      if (Double.isNaN(number)) {
        return kept;
      }
      KllDoublesSketch sketch = kept == null ? KllDoublesSketch.newHeapInstance(size) : sketch(kept);
      sketch.update(number);
      return sketch.toByteArray();
    }

    @Override
    public Object merge(Object one, Object other) {
      KllDoublesSketch sketch = sketch(one);
      sketch.merge(sketch(other));
      return sketch.toByteArray();
    }

    @Override
    public Object result(Object kept) {
      if (kept == null) {
        return null;
      }
      double[] found = sketch(kept).getQuantiles(ranks, QuantileSearchCriteria.INCLUSIVE);
      return isArray ? new GenericArrayData(found) : (Object) found[0];
    }

    private static KllDoublesSketch sketch(Object kept) {
      return KllDoublesSketch.heapify(Memory.wrap((byte[]) kept));
    }
  }

  static double number(Object value) {
    return value instanceof Decimal decimal ? decimal.toDouble() : ((Number) value).doubleValue();
  }
}
