package jmsbridge.predicate;

import org.apache.spark.unsafe.types.UTF8String;

/**
 * A value that is there, as predicates compare and calculate it (Jakarta Messaging 3.1, 3.8.1.1). NULL is null.
 *
 * <p>The twin of {@code routes/predicate/values.py}: both say the same for every value.
 */
final class Value {
  /** How a value is compared. UNTYPED is text that reads as the kind it is compared with; BYTES equal nothing. */
  enum Kind { TEXT, BOOLEAN, EXACT, SINGLE, DOUBLE, BYTES, UNTYPED }

  /** Operators of comparisons and arithmetic. */
  enum Sign { EQ, NE, LT, LE, GT, GE, ADD, SUB, MUL, DIV }

  static final Value TRUE = new Value(Kind.BOOLEAN, null, 1, 0);
  static final Value FALSE = new Value(Kind.BOOLEAN, null, 0, 0);

  final Kind kind;
  private final UTF8String characters;
  /** An exact number; 1 or 0 of a boolean. */
  private final long exact;
  /** An approximate number, rounded to a float where that is its kind. */
  private final double approximate;
  private Value number;
  private boolean numberIsRead;

  private Value(Kind kind, UTF8String characters, long exact, double approximate) {
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

  /** A property's value; null where its text is not of its declared type. A type of null is none at all. */
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

  /** The text this is or reads as; else null. */
  UTF8String text() {
    return kind == Kind.TEXT || kind == Kind.UNTYPED ? characters : null;
  }

  /** The boolean this is or reads as; else null. */
  private Value truth() {
    if (kind == Kind.UNTYPED) {
      return readTruth(characters);
    }
    return kind == Kind.BOOLEAN ? this : null;
  }

  /** The number this is or reads as; else null. */
  private Value number() {
    switch (kind) {
      case EXACT, SINGLE, DOUBLE:
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

  /** Unknown if either is NULL, false if they are unlike, else what the operator says. */
  static Truth compare(Sign sign, Value left, Value right) {
    if (left == null || right == null) {
      return Truth.UNKNOWN;
    }
    if (sign == Sign.EQ || sign == Sign.NE) {
      UTF8String text = left.text();
      UTF8String other = right.text();
      if (text != null && other != null) {
        return Truth.of(text.equals(other) == (sign == Sign.EQ));
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
    switch (promoted(a, b)) {
      case EXACT:
        return Truth.of(holds(sign, a.exact, b.exact));
      case SINGLE:
        return Truth.of(holds(sign, a.asSingle(), b.asSingle()));
      default:
        return Truth.of(holds(sign, a.asDouble(), b.asDouble()));
    }
  }

  /** NULL where an operand is no number, for division by zero, and where 64 bits are too few. */
  static Value calculate(Sign sign, Value left, Value right) {
    Value a = left == null ? null : left.number();
    Value b = right == null ? null : right.number();
    if (a == null || b == null) {
      return null;
    }
    switch (promoted(a, b)) {
      case EXACT:
        return exactly(sign, a.exact, b.exact);
      case SINGLE:
        // A double has more than twice the digits of a single: rounded once more, its result is the single's.
        return sign == Sign.DIV && b.asSingle() == 0 ? null : single(result(sign, a.asSingle(), b.asSingle()));
      default:
        return sign == Sign.DIV && b.asDouble() == 0 ? null : twice(result(sign, a.asDouble(), b.asDouble()));
    }
  }

  /** Unary minus; NULL where the operand is no number, and for the least number of 64 bits. */
  static Value negate(Value value) {
    Value number = value == null ? null : value.number();
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

  /** The wider kind of two numbers: Java's binary numeric promotion (JLS 5.6). */
  private static Kind promoted(Value a, Value b) {
    return a.kind.compareTo(b.kind) > 0 ? a.kind : b.kind;
  }

  private double asSingle() {
    return kind == Kind.EXACT ? (float) exact : approximate;
  }

  private double asDouble() {
    return kind == Kind.EXACT ? exact : approximate;
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

  /** An integer's text as a number; null if that takes more bits. */
  private static Value readExact(UTF8String digits, int bits) {
    try {
      long value = Long.parseLong(digits.toString());
      return value >> (bits - 1) == value >> (Long.SIZE - 1) ? exact(value) : null;
    } catch (NumberFormatException tooLarge) {
      return null;
    }
  }
}
