package jmsbridge.streams;

import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import jmsbridge.serdes.ValueReader;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Reader of JSON objects whose fields are text, numbers, booleans, or such objects, several times as fast as Spark's.
 *
 * <p>Whatever is less common is left to Spark's reader: escaped characters, long numbers, values of other types than the
 * schema's, and everything that is not valid. Both read the same numbers, none of which loses digits.
 */
final class JsonReader implements ValueReader {
  private static final long serialVersionUID = 1L;
  /** In the place of a field's number: the schema has no such field. */
  private static final int UNKNOWN = -1;
  /** In the place of a field's number: its name is for Spark to read. */
  private static final int UNFIT = -2;
  private static final int MOST_FIELDS = 64;
  /** So many digits fit into a long whatever they are. */
  private static final int MOST_DIGITS = 18;
  /** Objects and arrays without a field in the schema are passed up to this depth. */
  private static final int MOST_DEPTH = 100;

  private final ColumnReader spark;
  private final Fields fields;
  private transient byte[] in;
  private transient int at;
  /** Whether the text that was passed last has ASCII characters alone. */
  private transient boolean isAscii;

  private JsonReader(ColumnReader spark) {
    this.spark = spark;
    fields = new Fields(spark.type());
  }

  /** The reader of values that Spark's reader is for: that one itself if it has fields of other types. */
  static ValueReader of(ColumnReader spark) {
    return isSimple(spark.type()) ? new JsonReader(spark) : spark;
  }

  private static boolean isSimple(StructType type) {
    JsonType[] types = JsonType.of(type);
    boolean isSimple = types.length <= MOST_FIELDS;
    for (int each = 0; isSimple && each < types.length; each++) {
      isSimple = types[each] == null
          ? type.fields()[each].dataType() instanceof StructType nested && isSimple(nested) : types[each] != JsonType.TIME;
    }
    return isSimple;
  }

  @Override
  public StructType type() {
    return spark.type();
  }

  @Override
  public InternalRow read(byte[] value) {
    in = value;
    at = 0;
    return next() == '{' && fields.read() && next() == 0 && at == in.length ? fields.writer.getRow() : spark.read(value);
  }

  /** Fields of an object, and the row that they are read into. */
  private final class Fields implements Serializable {
    private static final long serialVersionUID = 1L;
    private final byte[][] names;
    private final JsonType[] types;
    /** Those that are objects; null in the place of others. */
    private final Fields[] objects;
    private transient UnsafeRowWriter writer;

    Fields(StructType type) {
      names = Arrays.stream(type.fieldNames())
          .map(each -> each.getBytes(StandardCharsets.UTF_8)).toArray(byte[][]::new);
      types = JsonType.of(type);
      objects = Arrays.stream(type.fields())
          .map(each -> each.dataType() instanceof StructType nested ? new Fields(nested) : null).toArray(Fields[]::new);
    }

    /** Reads an object that is the whole value; false if it is for Spark to read. */
    boolean read() {
      if (writer == null) {
        open(new UnsafeRowWriter(names.length, 64));
      }
      writer.reset();
      writer.zeroOutNullBytes();
      return readFields();
    }

    private void open(UnsafeRowWriter into) {
      writer = into;
      for (Fields each : objects) {
        if (each != null) {
          each.open(new UnsafeRowWriter(into, each.names.length));
        }
      }
    }

    /** Reads an object that is the value of a field. */
    private boolean readInto(UnsafeRowWriter outer, int field) {
      int cursor = outer.cursor();
      writer.resetRowWriter();
      if (!readFields()) {
        return false;
      }
      outer.setOffsetAndSizeFromPreviousCursor(field, cursor);
      return true;
    }

    private boolean readFields() {
      long found = 0;
      at++;
      byte separator = next();
      int field = -1;
      while (separator != '}') {
        field = readName(field + 1);
        if (field == UNFIT || next() != ':' || field >= 0 && (found & 1L << field) != 0) {
          return false;
        }
        at++;
        if (!(field < 0 ? passValue(0) : readValue(field))) {
          return false;
        }
        found |= field >= 0 ? 1L << field : 0;
        separator = next();
        if (separator == ',') {
          at++;
        } else if (separator != '}') {
          return false;
        }
      }
      at++;
      for (int each = 0; each < names.length; each++) {
        if ((found & 1L << each) == 0) {
          writer.setNullAt(each);
        }
      }
      return true;
    }

    /** Number of the field whose name is next, most likely {@code expected}. */
    private int readName(int expected) {
      if (next() != '"') {
        return UNFIT;
      }
      int start = at + 1;
      if (!passText()) {
        return UNFIT;
      }
      int end = at - 1;
      for (int count = 0; count < names.length; count++) {
        int field = (expected + count) % names.length;
        if (Arrays.equals(names[field], 0, names[field].length, in, start, end)) {
          return field;
        }
      }
      return UNKNOWN;
    }

    private boolean readValue(int field) {
      switch (next()) {
        case '"':
          return readText(field);
        case 't':
          return pass("true") && readBoolean(field, true);
        case 'f':
          return pass("false") && readBoolean(field, false);
        case 'n':
          writer.setNullAt(field);
          return pass("null");
        case '{':
          return objects[field] != null && objects[field].readInto(writer, field);
        default:
          return readNumber(field);
      }
    }

    private boolean readText(int field) {
      int start = at + 1;
      if (types[field] != JsonType.TEXT || !passText()) {
        return false;
      }
      int length = at - 1 - start;
      if (!isAscii && !UTF8String.fromBytes(in, start, length).isValid()) {
        return false;
      }
      writer.write(field, in, start, length);
      return true;
    }

    private boolean readBoolean(int field, boolean value) {
      if (types[field] != JsonType.BOOLEAN) {
        return false;
      }
      writer.write(field, value);
      return true;
    }

    private boolean readNumber(int field) {
      JsonType type = types[field];
      int start = at;
      boolean isNegative = next() == '-';
      if (isNegative) {
        at++;
      }
      int first = at;
      long number = passDigits();
      int digits = at - first;
      if (type == null || digits == 0 || digits > 1 && in[first] == '0') {
        return false;
      }
      if (type == JsonType.TEXT) {
        return readNumberAsText(field, start);
      }
      if (digits > MOST_DIGITS) {
        return false;
      }
      number = isNegative ? -number : number;
      if (at < in.length && in[at] == '.') {
        at++;
        int fraction = at;
        passDigits();
        if (at == fraction || at - fraction > MOST_DIGITS || type != JsonType.DOUBLE) {
          return false;
        }
        writer.write(field, Double.parseDouble(new String(in, start, at - start, StandardCharsets.ISO_8859_1)));
        return true;
      }
      switch (type) {
        case LONG:
          writer.write(field, number);
          return true;
        case INTEGER:
          writer.write(field, (int) number);
          return number == (int) number;
        case DOUBLE:
          writer.write(field, (double) number);
          // Minus zero is another number.
          return !isNegative || number != 0;
        default:
          return false;
      }
    }

    /** Reads a number, whose first digits have been passed, as the text that it is. */
    private boolean readNumberAsText(int field, int start) {
      if (!passFraction() || !passExponent()) {
        return false;
      }
      writer.write(field, in, start, at - start);
      return true;
    }
  }

  /** The next byte that is not white space, and no longer passed; 0 at the end. */
  private byte next() {
    while (at < in.length && (in[at] == ' ' || in[at] == '\n' || in[at] == '\r' || in[at] == '\t')) {
      at++;
    }
    return at < in.length ? in[at] : 0;
  }

  /** Passes a text in quotes; false if it is escaped or not ended. */
  private boolean passText() {
    byte[] bytes = in;
    int bits = 0;
    int each = at + 1;
    while (each < bytes.length && bytes[each] != '"') {
      byte one = bytes[each++];
      if (one == '\\' || one >= 0 && one < ' ') {
        return false;
      }
      bits |= one;
    }
    isAscii = bits >= 0;
    at = each + 1;
    return at <= bytes.length;
  }

  /** Passes a value that has no field in the schema; false if it is for Spark to read. */
  private boolean passValue(int depth) {
    switch (next()) {
      case '"':
        return passText();
      case 't':
        return pass("true");
      case 'f':
        return pass("false");
      case 'n':
        return pass("null");
      case '{':
        return passAll('}', depth);
      case '[':
        return passAll(']', depth);
      default:
        return passNumber();
    }
  }

  /** Passes an object or an array. */
  private boolean passAll(char end, int depth) {
    at++;
    byte separator = next();
    if (depth == MOST_DEPTH) {
      return false;
    }
    for (boolean isFirst = true; separator != end; isFirst = false) {
      if (!isFirst) {
        if (separator != ',') {
          return false;
        }
        at++;
      }
      if (end == '}') {
        if (next() != '"' || !passText() || next() != ':') {
          return false;
        }
        at++;
      }
      if (!passValue(depth + 1)) {
        return false;
      }
      separator = next();
    }
    at++;
    return true;
  }

  private boolean passNumber() {
    if (next() == '-') {
      at++;
    }
    int first = at;
    passDigits();
    int digits = at - first;
    return digits > 0 && digits <= MOST_DIGITS && (digits == 1 || in[first] != '0') && passFraction();
  }

  private boolean passFraction() {
    if (at == in.length || in[at] != '.') {
      return true;
    }
    at++;
    int fraction = at;
    passDigits();
    return at > fraction;
  }

  private boolean passExponent() {
    if (at == in.length || in[at] != 'e' && in[at] != 'E') {
      return true;
    }
    at++;
    if (at < in.length && (in[at] == '+' || in[at] == '-')) {
      at++;
    }
    int exponent = at;
    passDigits();
    return at > exponent;
  }

  /** Passes digits; their value, if they are not too many. */
  private long passDigits() {
    byte[] bytes = in;
    long value = 0;
    int each = at;
    while (each < bytes.length && bytes[each] >= '0' && bytes[each] <= '9') {
      value = 10 * value + bytes[each++] - '0';
    }
    at = each;
    return value;
  }

  private boolean pass(String word) {
    for (int each = 0; each < word.length(); each++) {
      if (at == in.length || in[at++] != word.charAt(each)) {
        return false;
      }
    }
    return true;
  }
}
