package jmsbridge.predicate;

import java.math.BigDecimal;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.unsafe.types.UTF8String;

/** Syntax of numbers in the texts of a message: ASCII, without blanks, as in {@code routes/predicate/numbers.py}. */
final class Numbers {
  /** Most significant digits of a number of a body. */
  static final int DIGITS = 38;
  /** Greatest power of ten of the first digit of a number of a body, and of its inverse. */
  static final int EXPONENT = 6_144;
  private static final UTF8String NAN = UTF8String.fromString("NaN");
  private static final UTF8String INFINITY = UTF8String.fromString("Infinity");
  private static final UTF8String MINUS_INFINITY = UTF8String.fromString("-Infinity");

  private static final String BLANKS = " \t\r\n";
  // Possessive, so that no text takes more than one pass.
  private static final Pattern PARTS = Pattern.compile(
      "(?<sign>[+-]?)(?:(?<whole>[0-9]++)(?:\\.(?<fraction>[0-9]*+))?|\\.(?<alone>[0-9]++))"
          + "(?:[eE](?<direction>[+-]?)(?<exponent>[0-9]++))?");

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
    int index = afterDigits(text, start);
    int digits = index - start;
    if (is(text, index, '.')) {
      int end = afterDigits(text, index + 1);
      digits += end - index - 1;
      index = end;
    }
    if (digits == 0) {
      return false;
    }
    if (is(text, index, 'e') || is(text, index, 'E')) {
      int exponent = afterSign(text, index + 1);
      index = afterDigits(text, exponent);
      if (index == exponent) {
        return false;
      }
    }
    return index == text.numBytes();
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
    for (int index = 0; index < word.length(); index++) {
      if ((text.getByte(index) | 0x20) != word.charAt(index)) {
        return false;
      }
    }
    return true;
  }

  /** The number that a text of a body writes, between blanks; null for other texts. */
  static BigDecimal decimal(String text) {
    int start = 0;
    int end = text.length();
    while (start < end && BLANKS.indexOf(text.charAt(start)) >= 0) {
      start++;
    }
    while (start < end && BLANKS.indexOf(text.charAt(end - 1)) >= 0) {
      end--;
    }
    Matcher parts = PARTS.matcher(text).region(start, end);
    if (!parts.matches()) {
      return null;
    }
    String fraction = parts.group("fraction") == null ? parts.group("alone") : parts.group("fraction");
    return decimal("-".equals(parts.group("sign")), given(parts.group("whole")), given(fraction),
        "-".equals(parts.group("direction")), given(parts.group("exponent")), end - start);
  }

  private static String given(String part) {
    return part == null ? "" : part;
  }

  /** The number that its parts write; null beyond 38 digits, or a power of ten that decimals of 128 bits lack. */
  static BigDecimal decimal(
      boolean isNegative, String whole, String fraction, boolean isSmall, String exponent, int length) {
    String digits = whole + fraction;
    int first = 0;
    while (first < digits.length() && digits.charAt(first) == '0') {
      first++;
    }
    if (first == digits.length()) {
      return BigDecimal.ZERO;
    }
    int last = digits.length();
    while (digits.charAt(last - 1) == '0') {
      last--;
    }
    int zero = 0;
    while (zero < exponent.length() && exponent.charAt(zero) == '0') {
      zero++;
    }
    // More digits than the length of the text has cannot be made good by its zeros.
    boolean isFar = exponent.length() - zero > 4 + String.valueOf(length).length();
    if (last - first > DIGITS || isFar) {
      return null;
    }
    long power = zero == exponent.length() ? 0 : Long.parseLong(exponent.substring(zero));
    power = (isSmall ? -power : power) - fraction.length() + digits.length() - last;
    if (Math.abs(power + last - first - 1) > EXPONENT) {
      return null;
    }
    BigDecimal decimal = new BigDecimal(digits.substring(first, last)).scaleByPowerOfTen((int) power);
    return isNegative ? decimal.negate() : decimal;
  }

  private static int afterSign(UTF8String text, int index) {
    return is(text, index, '+') || is(text, index, '-') ? index + 1 : index;
  }

  private static int afterDigits(UTF8String text, int start) {
    int index = start;
    while (index < text.numBytes() && text.getByte(index) >= '0' && text.getByte(index) <= '9') {
      index++;
    }
    return index;
  }

  private static boolean is(UTF8String text, int index, char wanted) {
    return index < text.numBytes() && text.getByte(index) == wanted;
  }
}
