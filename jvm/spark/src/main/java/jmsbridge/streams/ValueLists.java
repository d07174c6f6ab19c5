package jmsbridge.streams;

import java.io.Serializable;
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

  /** Type of the values of a list, and their order. */
  static final class Element implements Serializable {
    private static final long serialVersionUID = 1L;
    private final DataType type;
    private transient Ordering<Object> order;

    Element(DataType type) {
      this.type = type;
    }

    /** The order, which costs more to make than a comparison does. */
    private Ordering<Object> order() {
      if (order == null) {
        order = TypeUtils$.MODULE$.getInterpretedOrdering(type);
      }
      return order;
    }

    @Override
    public boolean equals(Object that) {
      return that instanceof Element other && type.equals(other.type);
    }

    @Override
    public int hashCode() {
      return type.hashCode();
    }
  }

  /** A list of at most {@code most} values of one type. */
  private interface Bounded extends Summary {
    Element element();

    int most();

    /** Adds a value to those that are kept; false if they stay as they are. */
    boolean take(List<Object> values, Object value);

    /** Whether a list that is full, with this value as its last, changes by another value. */
    default boolean displaces(Object value, Object last) {
      return false;
    }

    @Override
    default DataType keptType() {
      return DataTypes.createArrayType(element().type, false);
    }

    @Override
    default DataType type() {
      return keptType();
    }

    @Override
    default Object add(Object kept, Object value) {
      if (kept instanceof ArrayData array && array.numElements() == most()
          && !displaces(value, array.get(most() - 1, element().type))) {
        return kept;
      }
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
          values.add(array.get(at, element().type));
        }
      }
      return values;
    }
  }

  /** The first values. */
  record First(Element element, int most) implements Bounded {
    private static final long serialVersionUID = 1L;

    @Override
    public boolean take(List<Object> values, Object value) {
      return values.size() < most && values.add(value);
    }
  }

  /** The first values that differ. */
  record Distinct(Element element, int most) implements Bounded {
    private static final long serialVersionUID = 1L;

    @Override
    public boolean take(List<Object> values, Object value) {
      Ordering<Object> order = element.order();
      return values.size() < most && values.stream().noneMatch(each -> order.equiv(each, value)) && values.add(value);
    }
  }

  /** The largest values or, if ascending, the smallest ones, in this order; equal ones in the order in which they came. */
  record Ranked(Element element, int most, boolean isAscending) implements Bounded {
    private static final long serialVersionUID = 1L;

    @Override
    public boolean take(List<Object> values, Object value) {
      int at = 0;
      for (int to = values.size(); at < to; ) {
        int middle = (at + to) >>> 1;
        if (displaces(value, values.get(middle))) {
          to = middle;
        } else {
          at = middle + 1;
        }
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

    @Override
    public boolean displaces(Object value, Object last) {
      return isAscending ? element.order().lt(value, last) : element.order().gt(value, last);
    }
  }

  /** Number of the values that differ, up to {@code most}; they are kept in their order. */
  record Different(Element element, int most) implements Summary {
    private static final long serialVersionUID = 1L;

    @Override
    public DataType keptType() {
      return DataTypes.createArrayType(element().type, false);
    }

    @Override
    public DataType type() {
      return DataTypes.LongType;
    }

    @Override
    public Object add(Object kept, Object value) {
      ArrayData values = kept == null ? new GenericArrayData(new Object[0]) : (ArrayData) kept;
      Ordering<Object> order = element.order();
      int from = 0;
      int to = values.numElements();
      while (from < to) {
        int middle = (from + to) >>> 1;
        int compared = order.compare(values.get(middle, element.type), value);
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
        more[at < from ? at : at + 1] = values.get(at, element.type);
      }
      more[from] = value;
      return new GenericArrayData(more);
    }

    @Override
    public Object merge(Object one, Object other) {
      SortedSet<Object> values = new TreeSet<>(element.order());
      for (ArrayData each : new ArrayData[] {(ArrayData) one, (ArrayData) other}) {
        for (int at = 0; at < each.numElements(); at++) {
          values.add(each.get(at, element.type));
        }
      }
      return new GenericArrayData(values.stream().limit(most).toArray());
    }

    @Override
    public Object result(Object kept) {
      return kept == null ? 0L : (long) ((ArrayData) kept).numElements();
    }
  }
}
