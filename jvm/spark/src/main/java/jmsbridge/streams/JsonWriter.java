package jmsbridge.streams;

import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.Arrays;
import jmsbridge.serdes.ValueWriter;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Writer of JSON objects of text, numbers, booleans, times, and objects and arrays of these, several times as fast as
 * Spark's, with the same bytes. Other objects, and those with characters to escape, are left to Spark's expression.
 */
final class JsonWriter implements ValueWriter {
  private static final long serialVersionUID = 1L;
  private static final String NAME = "[A-Za-z0-9_ .-]*";
  private static final long MICROS = 1_000_000;
  /** The years 1 to 9999, whose times are written with four digits for the year. */
  private static final long FIRST_SECOND = -62_135_596_800L;
  private static final long LAST_SECOND = 253_402_300_799L;
  /** Digits of the greatest number. */
  private static final int MOST_DIGITS = 19;
  private static final byte[] NULL = "null".getBytes(StandardCharsets.ISO_8859_1);

  private final Projection spark;
  private final Form form;
  private transient byte[] out;
  private transient int size;

  /** Form of a value; all parts are null in that of one which is left to Spark. */
  private static final class Form implements Serializable {
    private static final long serialVersionUID = 1L;
    private final JsonType single;
    private final DecimalType decimal;
    /** Form of the elements of an array. */
    private final Form element;
    private final byte[][] names;
    /** Forms of the fields of an object. */
    private final Form[] fields;

    private Form(DataType type) {
      single = JsonType.of(type);
      decimal = type instanceof DecimalType of ? of : null;
      element = type instanceof ArrayType array ? new Form(array.elementType()) : null;
      names = type instanceof StructType struct
          ? Arrays.stream(struct.fieldNames())
              .map(each -> ("\"" + each + "\":").getBytes(StandardCharsets.UTF_8)).toArray(byte[][]::new)
          : null;
      fields = type instanceof StructType struct && Arrays.stream(struct.fieldNames()).allMatch(each -> each.matches(NAME))
          ? Arrays.stream(struct.fields()).map(each -> new Form(each.dataType())).toArray(Form[]::new)
          : null;
    }

    private boolean isSimple() {
      return single != null || decimal != null || element != null && element.isSimple()
          || fields != null && Arrays.stream(fields).allMatch(Form::isSimple);
    }
  }

  /** Creates the writer of rows with these fields; {@code spark} makes the bytes of such a row. */
  JsonWriter(StructType type, Projection spark) {
    this.spark = spark;
    Form found = new Form(type);
    form = found.isSimple() ? found : null;
  }

  @Override
  public byte[] write(String topic, InternalRow value) {
    size = 0;
    if (form != null && writeObject(form, value)) {
      return Arrays.copyOf(out, size);
    }
    return spark.apply(value).getBinary(0);
  }

  /** Writes an object; false if it is for Spark to write. */
  private boolean writeObject(Form of, InternalRow value) {
    put('{');
    boolean isFirst = true;
    for (int field = 0; field < of.fields.length; field++) {
      if (!value.isNullAt(field)) {
        if (!isFirst) {
          put(',');
        }
        isFirst = false;
        put(of.names[field]);
        if (!writeValue(of.fields[field], value, field)) {
          return false;
        }
      }
    }
    put('}');
    return true;
  }

  private boolean writeArray(Form of, ArrayData value) {
    put('[');
    for (int at = 0; at < value.numElements(); at++) {
      if (at > 0) {
        put(',');
      }
      if (value.isNullAt(at)) {
        put(NULL);
      } else if (!writeValue(of, value, at)) {
        return false;
      }
    }
    put(']');
    return true;
  }

  private boolean writeValue(Form of, SpecializedGetters in, int at) {
    if (of.single != null) {
      return writeSingle(of.single, in, at);
    }
    if (of.decimal != null) {
      Decimal number = in.getDecimal(at, of.decimal.precision(), of.decimal.scale());
      put(number.toJavaBigDecimal().toString().getBytes(StandardCharsets.ISO_8859_1));
      return true;
    }
    return of.element == null
        ? writeObject(of, in.getStruct(at, of.fields.length)) : writeArray(of.element, in.getArray(at));
  }

  private boolean writeSingle(JsonType type, SpecializedGetters in, int at) {
    switch (type) {
      case TEXT:
        return writeText(in.getUTF8String(at));
      case LONG:
        putNumber(in.getLong(at));
        return true;
      case INTEGER:
        putNumber(in.getInt(at));
        return true;
      case DOUBLE:
        double number = in.getDouble(at);
        put(Double.toString(number).getBytes(StandardCharsets.ISO_8859_1));
        return Double.isFinite(number);
      case BOOLEAN:
        put((in.getBoolean(at) ? "true" : "false").getBytes(StandardCharsets.ISO_8859_1));
        return true;
      case TIME:
        return writeTime(in.getLong(at));
      default:
        return false;
    }
  }

  private boolean writeText(UTF8String text) {
    byte[] bytes = text.getBytes();
    boolean isAscii = true;
    for (byte each : bytes) {
      if (each == '"' || each == '\\' || each >= 0 && each < ' ') {
        return false;
      }
      isAscii &= each >= 0;
    }
    if (!isAscii && !text.isValid()) {
      return false;
    }
    put('"');
    put(bytes);
    put('"');
    return true;
  }

  /** Writes a time as in `2026-11-25T14:00:00.000Z`. */
  private boolean writeTime(long micros) {
    long second = Math.floorDiv(micros, MICROS);
    if (second < FIRST_SECOND || second > LAST_SECOND) {
      return false;
    }
    LocalDateTime time = LocalDateTime.ofEpochSecond(second, 0, ZoneOffset.UTC);
    put('"');
    putDigits(time.getYear(), 4);
    put('-');
    putDigits(time.getMonthValue(), 2);
    put('-');
    putDigits(time.getDayOfMonth(), 2);
    put('T');
    putDigits(time.getHour(), 2);
    put(':');
    putDigits(time.getMinute(), 2);
    put(':');
    putDigits(time.getSecond(), 2);
    put('.');
    putDigits((int) (Math.floorMod(micros, MICROS) / 1000), 3);
    put('Z');
    put('"');
    return true;
  }

  private void putDigits(int number, int count) {
    reserve(count);
    int left = number;
    for (int each = count - 1; each >= 0; each--) {
      out[size + each] = (byte) ('0' + left % 10);
      left /= 10;
    }
    size += count;
  }

  private void putNumber(long number) {
    if (number == Long.MIN_VALUE) {
      put(Long.toString(number).getBytes(StandardCharsets.ISO_8859_1));
      return;
    }
    long left = Math.abs(number);
    int digits = 1;
    for (long bound = 10; digits < MOST_DIGITS && left >= bound; bound *= 10) {
      digits++;
    }
    if (number < 0) {
      put('-');
    }
    reserve(digits);
    for (int each = size + digits - 1; each >= size; each--) {
      out[each] = (byte) ('0' + left % 10);
      left /= 10;
    }
    size += digits;
  }

  private void put(char ascii) {
    reserve(1);
    out[size++] = (byte) ascii;
  }

  private void put(byte[] bytes) {
    reserve(bytes.length);
    System.arraycopy(bytes, 0, out, size, bytes.length);
    size += bytes.length;
  }

  private void reserve(int more) {
    if (out == null) {
      out = new byte[Math.max(256, more)];
    } else if (size + more > out.length) {
      out = Arrays.copyOf(out, Math.max(2 * out.length, size + more));
    }
  }
}
