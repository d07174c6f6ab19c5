package jmsbridge.predicate;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.math.BigDecimal;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Reader of a JSON text (RFC 8259) that keeps what paths ask for, in one pass over the bytes.
 *
 * <p>The whole text is checked. Of several fields with one name the last counts. An object is an array of its fields, an
 * array a list, each with what is asked of it; other values are {@link Value}, or null: JSON's null, what no path ends
 * at, and objects and arrays where a path ends.
 */
final class JsonScanner {
  /** Thrown for a text that is not JSON, or is nested too deeply. */
  static final class NotJsonException extends Exception {
    private static final long serialVersionUID = 1L;

    NotJsonException() {
      super("not JSON", null, false, false);
    }
  }

  private static final VarHandle LONGS =
      MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final long ONES = 0x0101010101010101L;
  private static final long HIGH_BITS = 0x8080808080808080L;
  private static final int DIGITS_OF_LONG = 18;
  private static final char REPLACEMENT = '\ufffd';

  private final byte[] text;
  private final int deepest;
  private int position;
  private int depth;

  JsonScanner(byte[] text, int deepest) {
    this.text = text;
    this.deepest = deepest;
    boolean isMarked = text.length > 2 && text[0] == (byte) 0xef && text[1] == (byte) 0xbb && text[2] == (byte) 0xbf;
    position = isMarked ? 3 : 0;
  }

  /** What is asked of the document. */
  Object read(JsonPaths.Wanted wanted) throws NotJsonException {
    Object document = value(wanted);
    end();
    return document;
  }

  /** Checks that only blanks follow. */
  void end() throws NotJsonException {
    skipBlanks();
    if (position < text.length) {
      throw new NotJsonException();
    }
  }

  /** Place of the next character. */
  int place() {
    return position;
  }

  /** Moves behind a value. */
  void skip() throws NotJsonException {
    value(null);
  }

  /** Number of elements of the array that comes next; stays in front of it. */
  int size() throws NotJsonException {
    int start = position;
    int size = 0;
    if (enter(']')) {
      do {
        skip();
        size++;
      } while (isNext());
    }
    leave(']');
    position = start;
    return size;
  }

  private Object value(JsonPaths.Wanted wanted) throws NotJsonException {
    skipBlanks();
    boolean isEnd = wanted != null && wanted.isEnd;
    switch (peek()) {
      case '{':
        return object(wanted);
      case '[':
        return array(wanted);
      case '"':
        int start = position + 1;
        boolean isPlain = skipString();
        return isEnd ? Value.text(characters(start, position - 1, isPlain)) : null;
      case 't':
        word("true");
        return isEnd ? Value.TRUE : null;
      case 'f':
        word("false");
        return isEnd ? Value.FALSE : null;
      case 'n':
        word("null");
        return null;
      default:
        return number(isEnd);
    }
  }

  private Object object(JsonPaths.Wanted wanted) throws NotJsonException {
    Object[] fields = wanted == null || wanted.size() == 0 ? null : new Object[wanted.size()];
    if (enter('}')) {
      do {
        int start = position + 1;
        boolean isPlain = skipName();
        int field = fields == null ? -1 : field(wanted, start, position - 1, isPlain);
        skipColon();
        Object value = value(field < 0 ? null : wanted.field(field));
        if (field >= 0) {
          fields[field] = value;
        }
      } while (isNext());
    }
    leave('}');
    return fields;
  }

  /** The name of the field that comes next, without escapes; moves behind its colon. */
  UTF8String name() throws NotJsonException {
    int start = position + 1;
    boolean isPlain = skipName();
    UTF8String name = characters(start, position - 1, isPlain);
    skipColon();
    return name;
  }

  private boolean skipName() throws NotJsonException {
    if (peek() != '"') {
      throw new NotJsonException();
    }
    return skipString();
  }

  private void skipColon() throws NotJsonException {
    skipBlanks();
    take(':');
    skipBlanks();
  }

  private int field(JsonPaths.Wanted wanted, int start, int end, boolean isPlain) {
    return isPlain ? wanted.index(text, start, end) : wanted.index(characters(start, end, false));
  }

  private Object array(JsonPaths.Wanted wanted) throws NotJsonException {
    JsonPaths.Wanted elements = wanted == null ? null : wanted.elements;
    List<Object> items = elements == null ? null : new ArrayList<>();
    if (enter(']')) {
      do {
        Object value = value(elements);
        if (elements != null) {
          items.add(value);
        }
      } while (isNext());
    }
    leave(']');
    return items;
  }

  /** Moves into an object or array that ends with a character; returns whether there is anything in it. */
  boolean enter(char end) throws NotJsonException {
    position++;
    if (++depth > deepest) {
      throw new NotJsonException();
    }
    skipBlanks();
    return peek() != end;
  }

  /** Moves to the next field or element; returns false if none follows. */
  boolean isNext() throws NotJsonException {
    skipBlanks();
    boolean is = isTaken(',');
    skipBlanks();
    return is;
  }

  /** Moves out of an object or array that ends with a character. */
  void leave(char end) throws NotJsonException {
    take(end);
    depth--;
  }

  private Value number(boolean isEnd) throws NotJsonException {
    int start = position;
    boolean isNegative = isTaken('-');
    int whole = position;
    if (!isTaken('0')) {
      digits();
    }
    int wholeEnd = position;
    int fraction = position;
    if (isTaken('.')) {
      fraction = position;
      digits();
    }
    int fractionEnd = position;
    int exponent = position;
    boolean isSmall = false;
    if (isTaken('e') || isTaken('E')) {
      isSmall = isTaken('-');
      if (!isSmall) {
        isTaken('+');
      }
      exponent = position;
      digits();
    }
    if (!isEnd) {
      return null;
    }
    int digits = wholeEnd - whole + fractionEnd - fraction;
    if (exponent == position && digits <= DIGITS_OF_LONG) {
      return Value.decimal(small(isNegative, whole, wholeEnd, fraction, fractionEnd));
    }
    BigDecimal decimal = Numbers.decimal(
        isNegative, ascii(whole, wholeEnd), ascii(fraction, fractionEnd), isSmall, ascii(exponent, position),
        position - start);
    return decimal == null ? null : Value.decimal(decimal);
  }

  private BigDecimal small(boolean isNegative, int whole, int wholeEnd, int fraction, int fractionEnd) {
    long number = 0;
    for (int index = whole; index < wholeEnd; index++) {
      number = number * 10 + text[index] - '0';
    }
    for (int index = fraction; index < fractionEnd; index++) {
      number = number * 10 + text[index] - '0';
    }
    int scale = fractionEnd - fraction;
    while (scale > 0 && number % 10 == 0) {
      number /= 10;
      scale--;
    }
    return BigDecimal.valueOf(isNegative ? -number : number, scale);
  }

  private String ascii(int start, int end) {
    return new String(text, start, end - start, StandardCharsets.ISO_8859_1);
  }

  private void digits() throws NotJsonException {
    int start = position;
    while (position < text.length && text[position] >= '0' && text[position] <= '9') {
      position++;
    }
    if (position == start) {
      throw new NotJsonException();
    }
  }

  /** Moves behind a string; returns whether its characters stand there as they are, without escapes. */
  private boolean skipString() throws NotJsonException {
    int start = ++position;
    position = plainEnd(start);
    boolean isPlain = true;
    boolean isAscii = true;
    while (true) {
      byte next = peek();
      if (next == '"') {
        break;
      }
      if (next >= 0 && next < ' ') {
        throw new NotJsonException();
      }
      position++;
      if (next == '\\') {
        isPlain = false;
        escape();
      } else if (next < 0) {
        isAscii = false;
      }
    }
    if (!isAscii && !UTF8String.fromBytes(text, start, position - start).isValid()) {
      throw new NotJsonException();
    }
    position++;
    return isPlain;
  }

  /** Place of the first byte that is a quote, a backslash, a control character or not ASCII; eight at a time. */
  private int plainEnd(int start) {
    int index = start;
    for (; index + Long.BYTES <= text.length; index += Long.BYTES) {
      long bytes = (long) LONGS.get(text, index);
      long quotes = bytes ^ ONES * '"';
      long slashes = bytes ^ ONES * '\\';
      // A byte that is less than another borrows from the next one, so that only the lowest bit found is certain.
      long marks = quotes - ONES & ~quotes | slashes - ONES & ~slashes | bytes - ONES * ' ' & ~bytes | bytes;
      if ((marks & HIGH_BITS) != 0) {
        return index + Long.numberOfTrailingZeros(marks & HIGH_BITS) / Byte.SIZE;
      }
    }
    while (index < text.length && text[index] >= ' ' && text[index] != '"' && text[index] != '\\') {
      index++;
    }
    return index;
  }

  private void escape() throws NotJsonException {
    byte kind = peek();
    position++;
    if (kind == 'u') {
      for (int end = position + 4; position < end; position++) {
        if (Character.digit(peek(), 16) < 0) {
          throw new NotJsonException();
        }
      }
    } else if ("\"\\/bfnrt".indexOf(kind) < 0) {
      throw new NotJsonException();
    }
  }

  /** The characters that a string between two places, without its quotes, stands for. */
  UTF8String characters(int start, int end, boolean isPlain) {
    if (isPlain) {
      return UTF8String.fromBytes(text, start, end - start);
    }
    String raw = new String(text, start, end - start, StandardCharsets.UTF_8);
    StringBuilder unescaped = new StringBuilder(raw.length());
    for (int index = 0; index < raw.length(); index++) {
      char next = raw.charAt(index);
      if (next != '\\') {
        unescaped.append(next);
        continue;
      }
      char kind = raw.charAt(++index);
      if (kind == 'u') {
        unescaped.append((char) Integer.parseInt(raw, index + 1, index + 5, 16));
        index += 4;
      } else {
        int known = "bfnrt".indexOf(kind);
        unescaped.append(known < 0 ? kind : "\b\f\n\r\t".charAt(known));
      }
    }
    return UTF8String.fromString(withoutHalves(unescaped));
  }

  /** The text with a replacement for each half of a character that stands alone. */
  private static String withoutHalves(StringBuilder text) {
    for (int index = 0; index < text.length(); index++) {
      char next = text.charAt(index);
      boolean isPair = Character.isHighSurrogate(next) && index + 1 < text.length()
          && Character.isLowSurrogate(text.charAt(index + 1));
      if (isPair) {
        index++;
      } else if (Character.isSurrogate(next)) {
        text.setCharAt(index, REPLACEMENT);
      }
    }
    return text.toString();
  }

  private void word(String word) throws NotJsonException {
    for (int index = 0; index < word.length(); index++) {
      take(word.charAt(index));
    }
  }

  private void take(char wanted) throws NotJsonException {
    if (!isTaken(wanted)) {
      throw new NotJsonException();
    }
  }

  private boolean isTaken(char wanted) {
    boolean is = position < text.length && text[position] == wanted;
    if (is) {
      position++;
    }
    return is;
  }

  /** The next character. */
  byte peek() throws NotJsonException {
    if (position == text.length) {
      throw new NotJsonException();
    }
    return text[position];
  }

  private static boolean isBlank(byte character) {
    return character == ' ' || character == '\n' || character == '\r' || character == '\t';
  }

  /** Moves behind blanks. */
  void skipBlanks() {
    while (position < text.length && text[position] <= ' ' && isBlank(text[position])) {
      position++;
    }
  }
}
