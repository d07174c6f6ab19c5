package jmsbridge.predicate;

import org.apache.spark.unsafe.types.UTF8String;

/** Syntax of numbers in the texts of a message: ASCII, without blanks, as in {@code routes/predicate/numbers.py}. */
final class Numbers {
  private static final UTF8String NAN = UTF8String.fromString("NaN");
  private static final UTF8String INFINITY = UTF8String.fromString("Infinity");
  private static final UTF8String MINUS_INFINITY = UTF8String.fromString("-Infinity");

  private Numbers() {}

  /** True if the text matches {@code [+-]?[0-9]+}. */
  static boolean isInteger(UTF8String text) {
    int start = afterSign(text, 0);
    int end = afterDigits(text, start);
    return end > start && end == text.numBytes();
  }

  /** True if the text matches {@code [+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?}. */
  static boolean isNumber(UTF8String text) {
    int start = afterSign(text, 0);
    int at = afterDigits(text, start);
    int digits = at - start;
    if (is(text, at, '.')) {
      int end = afterDigits(text, at + 1);
      digits += end - at - 1;
      at = end;
    }
    if (digits == 0) {
      return false;
    }
    if (is(text, at, 'e') || is(text, at, 'E')) {
      int exponent = afterSign(text, at + 1);
      at = afterDigits(text, exponent);
      if (at == exponent) {
        return false;
      }
    }
    return at == text.numBytes();
  }

  /** True if a property declared as float or double may have the text as its value. */
  static boolean isApproximate(UTF8String text) {
    return isNumber(text) || text.equals(NAN) || text.equals(INFINITY) || text.equals(MINUS_INFINITY);
  }

  /** True if the text equals the word, which consists of lower-case ASCII letters; the text may have any case. */
  static boolean isWord(UTF8String text, String word) {
    if (text.numBytes() != word.length()) {
      return false;
    }
    for (int at = 0; at < word.length(); at++) {
      if ((text.getByte(at) | 0x20) != word.charAt(at)) {
        return false;
      }
    }
    return true;
  }

  private static int afterSign(UTF8String text, int at) {
    return is(text, at, '+') || is(text, at, '-') ? at + 1 : at;
  }

  private static int afterDigits(UTF8String text, int start) {
    int at = start;
    while (at < text.numBytes() && text.getByte(at) >= '0' && text.getByte(at) <= '9') {
      at++;
    }
    return at;
  }

  private static boolean is(UTF8String text, int at, char wanted) {
    return at < text.numBytes() && text.getByte(at) == wanted;
  }
}
