package jmsbridge.predicate;

import java.math.BigDecimal;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Value in a predicate, with comparison and arithmetic (Jakarta Messaging 3.1, 3.8.1.1). SQL's NULL is Java's null.
 *
 * <p>{@code routes/predicate/values.py} is the same in Python: both give equal results for every value.
 */
final class Value {
  /**
   * Kind of a value in comparisons. UNTYPED is text parsed as the other operand's kind; BYTES equal nothing; DECIMAL is
   * a number of a body.
   */
  enum Kind { TEXT, BOOLEAN, EXACT, SINGLE, DOUBLE, DECIMAL, BYTES, UNTYPED }

  /** Operators of comparisons and arithmetic. */
  enum Sign { EQ, NE, LT, LE, GT, GE, ADD, SUB, MUL, DIV }

  static final Value TRUE = new Value(Kind.BOOLEAN, null, 1, 0);
  static final Value FALSE = new Value(Kind.BOOLEAN, null, 0, 0);

  final Kind kind;
  private final UTF8String characters;
  /** The number of kind EXACT; for a boolean 1 or 0. */
  private final long exact;
  /** The number of kind DOUBLE or SINGLE, for SINGLE rounded to a float. */
  private final double approximate;
  /** The number of kind DECIMAL; of a constant of kind DOUBLE the number as it is written; else null. */
  private final BigDecimal written;
  private Value number;
  private boolean numberIsRead;

  private Value(Kind kind, UTF8String characters, long exact, double approximate) {
    this(kind, characters, exact, approximate, null);
  }

  private Value(Kind kind, UTF8String characters, long exact, double approximate, BigDecimal written) {
    this.written = written;
    this.kind = kind;
    this.characters = characters;
    this.exact = exact;
    this.approximate = approximate;
  }

  static Value text(UTF8String characters) {
    return new Value(Kind.TEXT, characters, 0, 0);
  }

  static Value exact(long number) {
    return new Value(Kind.EXACT, null, number, 0);
  }

  static Value single(double number) {
    return new Value(Kind.SINGLE, null, 0, (float) number);
  }

  static Value twice(double number) {
    return new Value(Kind.DOUBLE, null, 0, number);
  }

  /** A constant of double precision, with the number that it writes. */
  static Value twice(double number, BigDecimal written) {
    return new Value(Kind.DOUBLE, null, 0, number, written);
  }

  static Value decimal(BigDecimal number) {
    return new Value(Kind.DECIMAL, null, 0, 0, number);
  }

  /** Reads a property's value; null if its text does not fit the declared type. UNTYPED if the type is null. */
  static Value read(UTF8String text, Declared type) {
    if (type == null) {
      return new Value(Kind.UNTYPED, text, 0, 0);
    }
    switch (type) {
      case STRING:
        return text(text);
      case BYTES:
        return new Value(Kind.BYTES, text, 0, 0);
      case BOOLEAN:
        return readTruth(text);
      case FLOAT:
        return Numbers.isApproximate(text) ? single(Float.parseFloat(text.toString())) : null;
      case DOUBLE:
        return Numbers.isApproximate(text) ? twice(Double.parseDouble(text.toString())) : null;
      default:
        return Numbers.isInteger(text) ? readExact(text, type.bits) : null;
    }
  }

  /** The value as text, if it is TEXT or UNTYPED; otherwise null. */
  UTF8String text() {
    return kind == Kind.TEXT || kind == Kind.UNTYPED ? characters : null;
  }

  /** The text of a body's value; equal numbers have equal texts. */
  UTF8String plain() {
    switch (kind) {
      case BOOLEAN:
        return UTF8String.fromString(exact == 1 ? "true" : "false");
      case DECIMAL:
        return UTF8String.fromString(written.toPlainString());
      default:
        return characters;
    }
  }

  /** The value as a boolean, if it is one or is UNTYPED text of one; otherwise null. */
  private Value truth() {
    if (kind == Kind.UNTYPED) {
      return readTruth(characters);
    }
    return kind == Kind.BOOLEAN ? this : null;
  }

  /** The value as a number, if it is one or is UNTYPED text of one; otherwise null. */
  Value number() {
    switch (kind) {
      case EXACT, SINGLE, DOUBLE, DECIMAL:
        return this;
      case UNTYPED:
        if (!numberIsRead) {
          number = readNumber(characters);
          numberIsRead = true;
        }
        return number;
      default:
        return null;
    }
  }

  /** Compares two values: unknown if either is NULL, false if their kinds cannot be compared, else by the operator. */
  static Truth compare(Sign sign, Value left, Value right) {
    if (left == null || right == null) {
      return Truth.UNKNOWN;
    }
    if (sign == Sign.EQ || sign == Sign.NE) {
      UTF8String text = left.text();
      UTF8String rightText = right.text();
      if (text != null && rightText != null) {
        return Truth.of(text.equals(rightText) == (sign == Sign.EQ));
      }
      Value truth = left.truth();
      Value otherTruth = right.truth();
      if (truth != null && otherTruth != null) {
        return Truth.of((truth.exact == otherTruth.exact) == (sign == Sign.EQ));
      }
    }
    Value a = left.number();
    Value b = right.number();
    if (a == null || b == null) {
      return Truth.FALSE;
    }
    if (a.kind == Kind.DECIMAL) {
      return Truth.of(a.holdsExactly(sign, b));
    }
    if (b.kind == Kind.DECIMAL) {
      return Truth.of(b.holdsExactly(mirrored(sign), a));
    }
    switch (promoted(a, b)) {
      case EXACT:
        return Truth.of(holds(sign, a.exact, b.exact));
      case SINGLE:
        return Truth.of(holds(sign, a.asSingle(), b.asSingle()));
      default:
        return Truth.of(holds(sign, a.asDouble(), b.asDouble()));
    }
  }

  /** Calculates; NULL if an operand is not a number, for division by zero, and if an exact result exceeds 64 bits. */
  static Value calculate(Sign sign, Value left, Value right) {
    Value a = left == null ? null : binary(left.number());
    Value b = right == null ? null : binary(right.number());
    if (a == null || b == null) {
      return null;
    }
    switch (promoted(a, b)) {
      case EXACT:
        return exactly(sign, a.exact, b.exact);
      case SINGLE:
        // A double has more than twice the digits of a float: its result, rounded again, is that of float arithmetic.
        return sign == Sign.DIV && b.asSingle() == 0 ? null : single(result(sign, a.asSingle(), b.asSingle()));
      default:
        return sign == Sign.DIV && b.asDouble() == 0 ? null : twice(result(sign, a.asDouble(), b.asDouble()));
    }
  }

  /** Unary minus; NULL if the operand is not a number, and for the least number of 64 bits. */
  static Value negate(Value value) {
    Value number = value == null ? null : binary(value.number());
    if (number == null) {
      return null;
    }
    switch (number.kind) {
      case EXACT:
        return number.exact == Long.MIN_VALUE ? null : exact(-number.exact);
      case SINGLE:
        return single(-number.approximate);
      default:
        return twice(-number.approximate);
    }
  }

  /** Compares this number of a body with another number: exactly, or as the other's kind if that approximates. */
  private boolean holdsExactly(Sign sign, Value other) {
    if (other.kind == Kind.SINGLE) {
      return holds(sign, written.floatValue(), other.approximate);
    }
    if (other.kind == Kind.DOUBLE && other.written == null) {
      return holds(sign, written.doubleValue(), other.approximate);
    }
    BigDecimal number = other.kind == Kind.EXACT ? BigDecimal.valueOf(other.exact) : other.written;
    return holds(sign, written.compareTo(number), 0L);
  }

  private static Sign mirrored(Sign sign) {
    return switch (sign) {
      case LT -> Sign.GT;
      case LE -> Sign.GE;
      case GT -> Sign.LT;
      case GE -> Sign.LE;
      default -> sign;
    };
  }

  /** A number with which arithmetic calculates: that of a body as 64 bits, exactly if they can hold it. */
  private static Value binary(Value number) {
    if (number == null || number.kind != Kind.DECIMAL) {
      return number;
    }
    try {
      return exact(number.written.longValueExact());
    } catch (ArithmeticException other) {
      return twice(number.written.doubleValue());
    }
  }

  /** The wider kind of two numbers: Java's binary numeric promotion (JLS 5.6). */
  private static Kind promoted(Value a, Value b) {
    return a.kind.compareTo(b.kind) > 0 ? a.kind : b.kind;
  }

  private double asSingle() {
    return kind == Kind.EXACT ? (float) exact : approximate;
  }

  /** The number as a double; to be called on numbers. */
  double asDouble() {
    return kind == Kind.DECIMAL ? written.doubleValue() : kind == Kind.EXACT ? exact : approximate;
  }

  private static boolean holds(Sign sign, long a, long b) {
    switch (sign) {
      case EQ: return a == b;
      case NE: return a != b;
      case LT: return a < b;
      case LE: return a <= b;
      case GT: return a > b;
      default: return a >= b;
    }
  }

  private static boolean holds(Sign sign, double a, double b) {
    switch (sign) {
      case EQ: return a == b;
      case NE: return a != b;
      case LT: return a < b;
      case LE: return a <= b;
      case GT: return a > b;
      default: return a >= b;
    }
  }

  private static double result(Sign sign, double a, double b) {
    switch (sign) {
      case ADD: return a + b;
      case SUB: return a - b;
      case MUL: return a * b;
      default: return a / b;
    }
  }

  private static Value exactly(Sign sign, long a, long b) {
    try {
      switch (sign) {
        case ADD: return exact(Math.addExact(a, b));
        case SUB: return exact(Math.subtractExact(a, b));
        case MUL: return exact(Math.multiplyExact(a, b));
        default: return b == 0 || a == Long.MIN_VALUE && b == -1 ? null : exact(a / b);
      }
    } catch (ArithmeticException tooLarge) {
      return null;
    }
  }

  private static Value readTruth(UTF8String text) {
    if (Numbers.isWord(text, "true")) {
      return TRUE;
    }
    return Numbers.isWord(text, "false") ? FALSE : null;
  }

  private static Value readNumber(UTF8String text) {
    if (!Numbers.isNumber(text)) {
      return null;
    }
    Value exact = Numbers.isInteger(text) ? readExact(text, Long.SIZE) : null;
    return exact == null ? twice(Double.parseDouble(text.toString())) : exact;
  }

  /** The number that the text of an integer stands for; null if it needs more than `bits` bits. */
  private static Value readExact(UTF8String digits, int bits) {
    UTF8String.LongWrapper number = new UTF8String.LongWrapper();
    boolean fits = digits.toLong(number) && number.value >> (bits - 1) == number.value >> (Long.SIZE - 1);
    return fits ? exact(number.value) : null;
  }
}
