package jmsbridge.streams;

import java.io.Serializable;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.math.BigInteger;
import java.nio.ByteOrder;
import java.util.stream.IntStream;
import jmsbridge.serdes.UnfitValueException;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.CalendarIntervalType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.UserDefinedType;
import org.apache.spark.sql.types.VariantType;
import org.apache.spark.sql.types.YearMonthIntervalType;
import org.apache.spark.unsafe.Platform;

/**
 * Check of bytes that are to be read as a row of one type. Spark's getters take the offsets and sizes in a row as they
 * are, and read whatever memory these name: of a row that has passed, they read its own bytes alone.
 *
 * <p>The layout is that of {@link UnsafeRow}, UnsafeArrayData and UnsafeMapData. Null fields are not looked at, since
 * their getters give null without reading more.
 */
final class RowCheck implements Serializable {
  private static final long serialVersionUID = 1L;
  private static final VarHandle LONGS = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.nativeOrder());
  private static final VarHandle INTS = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.nativeOrder());
  private static final int WORD = Long.BYTES;
  private static final int MOST_DECIMAL_BYTES = 16;
  private static final int INTERVAL_BYTES = 16;

  private final Row row;

  RowCheck(StructType type) {
    row = new Row(type);
  }

  /**
   * The row in the bytes from a position on.
   *
   * @throws UnfitValueException if they are not a row of the type
   */
  UnsafeRow row(byte[] bytes, int from) {
    String fault = from > bytes.length ? "it ends before its row" : row.fault(bytes, from, bytes.length - from);
    if (fault != null) {
      throw new UnfitValueException("the bytes are not a row of this topology: " + fault);
    }
    UnsafeRow checkedRow = new UnsafeRow(row.fields);
    checkedRow.pointTo(bytes, Platform.BYTE_ARRAY_OFFSET + from, bytes.length - from);
    return checkedRow;
  }

  /**
   * The row of an entry of the state, from a position on.
   *
   * @throws DamagedStateException if the bytes are not a row of the type
   */
  UnsafeRow kept(byte[] entry, int from) {
    try {
      return row(entry, from);
    } catch (UnfitValueException unfit) {
      throw new DamagedStateException(unfit.getMessage());
    }
  }

  private static long word(byte[] in, int index) {
    return (long) LONGS.get(in, index);
  }

  private static boolean isSet(byte[] in, int bits, int number) {
    return (word(in, bits + (number >> 6) * WORD) >>> number & 1) != 0;
  }

  private static int wordsOf(int bits) {
    return (bits + 63 >> 6) * WORD;
  }

  /** Check of one value, in a slot of its own: a word in a row, fewer bytes in some arrays. */
  private abstract static class Slot implements Serializable {
    private static final long serialVersionUID = 1L;

    /** What is wrong in a row or array of some bytes, whose part of fixed size ends at {@code least}; null: nothing. */
    abstract String fault(byte[] in, int from, int length, int slot, int least);
  }

  private static final class Flag extends Slot {
    private static final long serialVersionUID = 1L;

    @Override
    String fault(byte[] in, int from, int length, int slot, int least) {
      return in[slot] == 0 || in[slot] == 1 ? null : "%d is not a boolean".formatted(in[slot]);
    }
  }

  /** Number of a decimal type that fits its slot; getters fail for one with too many digits. */
  private static final class ShortDecimal extends Slot {
    private static final long serialVersionUID = 1L;
    private final long limit;

    ShortDecimal(int precision) {
      limit = BigInteger.TEN.pow(precision).longValueExact();
    }

    @Override
    String fault(byte[] in, int from, int length, int slot, int least) {
      long number = word(in, slot);
      return number > -limit && number < limit ? null : "%d has too many digits".formatted(number);
    }
  }

  /** Value whose slot has its offset and its size. */
  private static class Region extends Slot {
    private static final long serialVersionUID = 1L;

    @Override
    final String fault(byte[] in, int from, int length, int slot, int least) {
      long word = word(in, slot);
      int offset = (int) (word >>> Integer.SIZE);
      int size = (int) word;
      if (size < 0 || offset < least || offset > length - size || offset % WORD != 0) {
        return "%d bytes at %d do not lie in the %d bytes behind %d".formatted(size, offset, length, least);
      }
      return fault(in, from + offset, size);
    }

    String fault(byte[] in, int from, int length) {
      return null;
    }
  }

  private static final class Interval extends Region {
    private static final long serialVersionUID = 1L;

    @Override
    String fault(byte[] in, int from, int length) {
      return length == INTERVAL_BYTES ? null : "%d bytes are not an interval".formatted(length);
    }
  }

  /** Number of a decimal type, most significant byte first. */
  private static final class LongDecimal extends Region {
    private static final long serialVersionUID = 1L;
    private final BigInteger limit;

    LongDecimal(int precision) {
      limit = BigInteger.TEN.pow(precision);
    }

    @Override
    String fault(byte[] in, int from, int length) {
      boolean isNumber = length > 0 && length <= MOST_DECIMAL_BYTES
          && new BigInteger(in, from, length).abs().compareTo(limit) < 0;
      return isNumber ? null : "%d bytes are not a decimal".formatted(length);
    }
  }

  /** Value behind its size, and then its metadata. */
  private static final class Variant extends Region {
    private static final long serialVersionUID = 1L;

    @Override
    String fault(byte[] in, int from, int length) {
      int size = length < Integer.BYTES ? -1 : (int) INTS.get(in, from);
      return size < 0 || size > length - Integer.BYTES ? "%d bytes are not a variant".formatted(length) : null;
    }
  }

  private static final class Row extends Region {
    private static final long serialVersionUID = 1L;
    private final int fields;
    private final int bits;
    private final int fixed;
    /** The fields with something to check, and their checks. */
    private final int[] checked;
    private final Slot[] checks;

    Row(StructType type) {
      StructField[] all = type.fields();
      fields = all.length;
      bits = wordsOf(fields);
      fixed = bits + fields * WORD;
      Slot[] slots = new Slot[fields];
      for (int index = 0; index < fields; index++) {
        slots[index] = slot(all[index].dataType());
      }
      checked = IntStream.range(0, fields).filter(at -> slots[at] != null).toArray();
      checks = IntStream.of(checked).mapToObj(at -> slots[at]).toArray(Slot[]::new);
    }

    @Override
    String fault(byte[] in, int from, int length) {
      if (length < fixed || length % WORD != 0) {
        return "%d bytes cannot have %d fields".formatted(length, fields);
      }
      for (int index = 0; index < checked.length; index++) {
        int field = checked[index];
        if (!isSet(in, from, field)) {
          String fault = checks[index].fault(in, from, length, from + bits + field * WORD, fixed);
          if (fault != null) {
            return "field %d: %s".formatted(field, fault);
          }
        }
      }
      return null;
    }
  }

  private static final class Array extends Region {
    private static final long serialVersionUID = 1L;
    private final int elementBytes;
    private final Slot check;

    Array(DataType element) {
      elementBytes = elementBytes(element);
      check = slot(element);
    }

    @Override
    String fault(byte[] in, int from, int length) {
      long count = length < WORD ? -1 : word(in, from);
      if (count < 0 || count > length) {
        return "%d bytes cannot have %d elements".formatted(length, count);
      }
      int elements = WORD + wordsOf((int) count);
      long fixed = elements + count * elementBytes;
      if (fixed > length) {
        return "%d bytes cannot have %d elements".formatted(length, count);
      }
      for (int index = 0; check != null && index < count; index++) {
        if (!isSet(in, from + WORD, index)) {
          String fault = check.fault(in, from, length, from + elements + index * elementBytes, (int) fixed);
          if (fault != null) {
            return "element %d: %s".formatted(index, fault);
          }
        }
      }
      return null;
    }
  }

  private static final class Entries extends Region {
    private static final long serialVersionUID = 1L;
    private final Array keys;
    private final Array values;

    Entries(MapType type) {
      keys = new Array(type.keyType());
      values = new Array(type.valueType());
    }

    @Override
    String fault(byte[] in, int from, int length) {
      long size = length < 3 * WORD ? -1 : word(in, from);
      if (size < WORD || size > length - 2 * WORD) {
        return "%d bytes cannot have keys of %d bytes".formatted(length, size);
      }
      int behind = WORD + (int) size;
      String fault = keys.fault(in, from + WORD, (int) size);
      fault = fault == null ? values.fault(in, from + behind, length - behind) : fault;
      boolean isPaired = fault != null || word(in, from + WORD) == word(in, from + behind);
      return isPaired ? fault : "it has other numbers of keys and of values";
    }
  }

  /** The check of a type; null: whatever is in its slot is a value. */
  private static Slot slot(DataType type) {
    if (type instanceof UserDefinedType<?> user) {
      return slot(user.sqlType());
    }
    if (type instanceof DecimalType decimal) {
      int precision = decimal.precision();
      return precision <= Decimal.MAX_LONG_DIGITS() ? new ShortDecimal(precision) : new LongDecimal(precision);
    }
    if (UnsafeRow.isFixedLength(type)) {
      return type instanceof BooleanType ? new Flag() : null;
    }
    if (type instanceof StructType struct) {
      return new Row(struct);
    }
    if (type instanceof ArrayType array) {
      return new Array(array.elementType());
    }
    if (type instanceof MapType map) {
      return new Entries(map);
    }
    if (type instanceof CalendarIntervalType) {
      return new Interval();
    }
    return type instanceof VariantType ? new Variant() : new Region();
  }

  /** Bytes of an element's slot in an array. */
  private static int elementBytes(DataType type) {
    if (type instanceof UserDefinedType<?> user) {
      return elementBytes(user.sqlType());
    }
    if (type instanceof BooleanType || type instanceof ByteType) {
      return Byte.BYTES;
    }
    if (type instanceof ShortType) {
      return Short.BYTES;
    }
    boolean isInt = type instanceof IntegerType || type instanceof DateType || type instanceof FloatType
        || type instanceof YearMonthIntervalType;
    return isInt ? Integer.BYTES : WORD;
  }
}
