package jmsbridge.streams;

import java.util.ArrayList;
import java.util.List;
import java.util.SortedSet;
import java.util.TreeSet;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.catalyst.util.TypeUtils$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import scala.math.Ordering;

/** Lists of a bounded number of values. */
final class ValueLists {
  private ValueLists() {}

  /** A list of at most {@code most} values of one type. */
  private interface Bounded extends Summary {
    DataType element();

    int most();

    /** Adds a value to those that are kept; false if they stay as they are. */
    boolean take(List<Object> values, Object value);

    @Override
    default DataType keptType() {
      return DataTypes.createArrayType(element(), false);
    }

    @Override
    default DataType type() {
      return keptType();
    }

    @Override
    default Object add(Object kept, Object value) {
      List<Object> values = values(kept);
      return take(values, value) ? new GenericArrayData(values.toArray()) : kept;
    }

    @Override
    default Object merge(Object one, Object other) {
      List<Object> values = values(one);
      values(other).forEach(each -> take(values, each));
      return new GenericArrayData(values.toArray());
    }

    @Override
    default Object result(Object kept) {
      return kept == null ? new GenericArrayData(new Object[0]) : kept;
    }

    private List<Object> values(Object kept) {
      List<Object> values = new ArrayList<>();
      if (kept instanceof ArrayData array) {
        for (int at = 0; at < array.numElements(); at++) {
          values.add(array.get(at, element()));
        }
      }
      return values;
    }
  }

  /** The first values. */
  record First(DataType element, int most) implements Bounded {
    private static final long serialVersionUID = 1L;

    @Override
    public boolean take(List<Object> values, Object value) {
      return values.size() < most && values.add(value);
    }
  }

  /** The first values that differ. */
  record Distinct(DataType element, int most) implements Bounded {
    private static final long serialVersionUID = 1L;

    @Override
    public boolean take(List<Object> values, Object value) {
      Ordering<Object> order = order(element);
      return values.size() < most && values.stream().noneMatch(each -> order.equiv(each, value)) && values.add(value);
    }
  }

  /** The largest values or, if ascending, the smallest ones, in this order; equal ones in the order in which they came. */
  record Ranked(DataType element, int most, boolean isAscending) implements Bounded {
    private static final long serialVersionUID = 1L;

    @Override
    public boolean take(List<Object> values, Object value) {
      Ordering<Object> order = order(element);
      int at = values.size();
      while (at > 0 && (isAscending ? order.lt(value, values.get(at - 1)) : order.gt(value, values.get(at - 1)))) {
        at--;
      }
      if (at == most) {
        return false;
      }
      values.add(at, value);
      if (values.size() > most) {
        values.remove(most);
      }
      return true;
    }
  }

  /** Number of the values that differ, up to {@code most}; they are kept in their order. */
  record Different(DataType element, int most) implements Summary {
    private static final long serialVersionUID = 1L;

    @Override
    public DataType keptType() {
      return DataTypes.createArrayType(element(), false);
    }

    @Override
    public DataType type() {
      return DataTypes.LongType;
    }

    @Override
    public Object add(Object kept, Object value) {
      ArrayData values = kept == null ? new GenericArrayData(new Object[0]) : (ArrayData) kept;
      Ordering<Object> order = order(element);
      int from = 0;
      int to = values.numElements();
      while (from < to) {
        int middle = (from + to) >>> 1;
        int compared = order.compare(values.get(middle, element), value);
        if (compared == 0) {
          return kept;
        }
        from = compared < 0 ? middle + 1 : from;
        to = compared < 0 ? to : middle;
      }
      int size = values.numElements();
      if (size == most) {
        return kept;
      }
      Object[] more = new Object[size + 1];
      for (int at = 0; at < size; at++) {
        more[at < from ? at : at + 1] = values.get(at, element);
      }
      more[from] = value;
      return new GenericArrayData(more);
    }

    @Override
    public Object merge(Object one, Object other) {
      SortedSet<Object> values = new TreeSet<>(order(element));
      for (ArrayData each : new ArrayData[] {(ArrayData) one, (ArrayData) other}) {
        for (int at = 0; at < each.numElements(); at++) {
          values.add(each.get(at, element));
        }
      }
      return new GenericArrayData(values.stream().limit(most).toArray());
    }

    @Override
    public Object result(Object kept) {
      return kept == null ? 0L : (long) ((ArrayData) kept).numElements();
    }
  }

  private static Ordering<Object> order(DataType of) {
    return TypeUtils$.MODULE$.getInterpretedOrdering(of);
  }
}
