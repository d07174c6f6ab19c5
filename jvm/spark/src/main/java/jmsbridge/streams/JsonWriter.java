package jmsbridge.streams;

import java.nio.charset.StandardCharsets;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.Arrays;
import java.util.Objects;
import jmsbridge.serdes.ValueWriter;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Writer of JSON objects whose fields are text, numbers, booleans or times, several times as fast as Spark's, with the
 * same bytes. Other objects, and those with characters to escape, are left to Spark's expression.
 */
final class JsonWriter implements ValueWriter {
  private static final long serialVersionUID = 1L;
  private static final String NAME = "[A-Za-z0-9_ .-]*";
  private static final long MICROS = 1_000_000;
  /** The years 1 to 9999, whose times are written with four digits for the year. */
  private static final long FIRST_SECOND = -62_135_596_800L;
  private static final long LAST_SECOND = 253_402_300_799L;

  private final Projection spark;
  private final byte[][] names;
  private final JsonType[] types;
  private final boolean isSimple;
  private transient byte[] out;
  private transient int size;

  /** Creates the writer of rows with these fields; {@code spark} makes the bytes of such a row. */
  JsonWriter(StructType type, Projection spark) {
    this.spark = spark;
    names = Arrays.stream(type.fieldNames())
        .map(each -> ("\"" + each + "\":").getBytes(StandardCharsets.UTF_8)).toArray(byte[][]::new);
    types = JsonType.of(type);
    isSimple = Arrays.stream(types).allMatch(Objects::nonNull)
        && Arrays.stream(type.fieldNames()).allMatch(each -> each.matches(NAME));
  }

  @Override
  public byte[] write(String topic, InternalRow value) {
    if (isSimple && writeObject(value)) {
      return Arrays.copyOf(out, size);
    }
    return spark.apply(value).getBinary(0);
  }

  /** Writes the value; false if it is for Spark to write. */
  private boolean writeObject(InternalRow value) {
    if (out == null) {
      out = new byte[256];
    }
    size = 0;
    put('{');
    for (int field = 0; field < names.length; field++) {
      if (!value.isNullAt(field)) {
        if (size > 1) {
          put(',');
        }
        put(names[field]);
        if (!writeField(value, field)) {
          return false;
        }
      }
    }
    put('}');
    return true;
  }

  private boolean writeField(InternalRow value, int field) {
    switch (types[field]) {
      case TEXT:
        return writeText(value.getUTF8String(field));
      case LONG:
        putNumber(value.getLong(field));
        return true;
      case INTEGER:
        putNumber(value.getInt(field));
        return true;
      case DOUBLE:
        double number = value.getDouble(field);
        put(Double.toString(number).getBytes(StandardCharsets.ISO_8859_1));
        return Double.isFinite(number);
      case BOOLEAN:
        put((value.getBoolean(field) ? "true" : "false").getBytes(StandardCharsets.ISO_8859_1));
        return true;
      case TIME:
        return writeTime(value.getLong(field));
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
    put(Long.toString(number).getBytes(StandardCharsets.ISO_8859_1));
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
    if (size + more > out.length) {
      out = Arrays.copyOf(out, Math.max(2 * out.length, size + more));
    }
  }
}
