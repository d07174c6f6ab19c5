package jmsbridge.serdes;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.DateTimeException;
import java.time.Instant;
import java.time.LocalDate;
import java.util.Arrays;
import java.util.Base64;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** What the scalars of a JSON body stand for in a schema; null: not what is asked for. */
final class BodyValues {
  private static final int MOST_DIGITS = 1_000;
  private static final String DATE = "([0-9]{4})-([0-9]{2})-([0-9]{2})";
  private static final Pattern ONLY_DATE = Pattern.compile(DATE);
  private static final Pattern TIME = Pattern.compile(
      DATE + "T([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9])(?:\\.([0-9]++))?(?:Z|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))");
  private static final int NANO_DIGITS = 9;
  private static final long SECONDS_OF_DAY = 86_400;

  private BodyValues() {}

  /** The number that a value is; in JSON of XML also one that its text writes. */
  static BodyJson.Written number(Object value, boolean fromXml) {
    if (value instanceof BodyJson.Written number) {
      return number;
    }
    return fromXml && value instanceof String text ? BodyJson.number(text) : null;
  }

  static Boolean flag(Object value, boolean fromXml) {
    if (value instanceof Boolean flag) {
      return flag;
    }
    if (!fromXml || !(value instanceof String text)) {
      return null;
    }
    return switch (text) {
      case "true", "1" -> true;
      case "false", "0" -> false;
      default -> null;
    };
  }

  /** The integer that a number is, if it lies within two others. */
  static BigInteger integer(BodyJson.Written number, BigInteger smallest, BigInteger largest) {
    if (number == null) {
      return null;
    }
    Long plain = number.plain();
    BigInteger exact = plain == null ? integer(number.exact(), 20) : BigInteger.valueOf(plain);
    return exact == null || exact.compareTo(smallest) < 0 || exact.compareTo(largest) > 0 ? null : exact;
  }

  /** The digits of a number as a decimal of a precision and a scale. */
  static BigInteger unscaled(BodyJson.Written number, int precision, int scale) {
    return number == null ? null : integer(number.exact(), precision, scale);
  }

  private static BigInteger integer(BigDecimal exact, int precision, int scale) {
    try {
      return integer(exact.scaleByPowerOfTen(scale), Math.min(precision, MOST_DIGITS));
    } catch (ArithmeticException beyondAllScales) {
      return null;
    }
  }

  private static BigInteger integer(BigDecimal exact, int digits) {
    if (exact.signum() == 0) {
      return BigInteger.ZERO;
    }
    // A look at the digits first: no power of ten is computed that has more of them.
    long whole = (long) exact.precision() - exact.scale();
    if (whole < 1 || whole > digits) {
      return null;
    }
    try {
      return exact.toBigIntegerExact();
    } catch (ArithmeticException hasFraction) {
      return null;
    }
  }

  static Float single(BodyJson.Written number) {
    Float nearest = number == null ? null : Float.valueOf(number.text());
    return nearest == null || nearest.isInfinite() ? null : nearest;
  }

  static Double real(BodyJson.Written number) {
    Double nearest = number == null ? null : Double.valueOf(number.text());
    return nearest == null || nearest.isInfinite() ? null : nearest;
  }

  /** The bytes of a text in base64, as an encoder writes it. */
  static byte[] bytes(Object value) {
    if (!(value instanceof String text) || text.length() % 4 != 0) {
      return null;
    }
    try {
      byte[] bytes = Base64.getDecoder().decode(text);
      return Base64.getEncoder().encodeToString(bytes).equals(text) ? bytes : null;
    } catch (IllegalArgumentException other) {
      return null;
    }
  }

  /** A number with a sign in so many bytes. */
  static byte[] bytes(BigInteger number, int size) {
    byte[] least = number.toByteArray();
    if (least.length > size) {
      return null;
    }
    byte[] bytes = new byte[size];
    Arrays.fill(bytes, 0, size - least.length, (byte) (number.signum() < 0 ? -1 : 0));
    System.arraycopy(least, 0, bytes, size - least.length, least.length);
    return bytes;
  }

  /** Days since 1970 of a text such as 2026-11-28. */
  static Long days(Object value) {
    Matcher date = value instanceof String text ? ONLY_DATE.matcher(text) : null;
    return date == null || !date.matches() ? null : days(date);
  }

  private static Long days(Matcher date) {
    int year = Integer.parseInt(date.group(1));
    try {
      return year == 0 ? null
          : LocalDate.of(year, Integer.parseInt(date.group(2)), Integer.parseInt(date.group(3))).toEpochDay();
    } catch (DateTimeException none) {
      return null;
    }
  }

  /** Time since 1970, in units of so many digits below a second, of a text as {@link #instant} reads it. */
  static Long time(Object value, int digits) {
    Instant time = instant(value);
    long unit = (long) Math.pow(10, NANO_DIGITS - digits);
    return time == null || time.getNano() % unit != 0
        ? null
        : time.getEpochSecond() * (long) Math.pow(10, digits) + time.getNano() / unit;
  }

  /** The time of a text such as 2026-11-28T04:00:00.5+01:00. */
  static Instant instant(Object value) {
    Matcher time = value instanceof String text ? TIME.matcher(text) : null;
    Long days = time == null || !time.matches() ? null : days(time);
    String fraction = days == null || time.group(7) == null ? "" : time.group(7);
    if (days == null || fraction.chars().skip(NANO_DIGITS).anyMatch(each -> each != '0')) {
      return null;
    }
    long offset = time.group(8) == null ? 0 : seconds(time, 9) * (time.group(8).equals("-") ? -1 : 1);
    long seconds = days * SECONDS_OF_DAY + seconds(time, 4) + Long.parseLong(time.group(6)) - offset;
    String nanos = (fraction + "0".repeat(NANO_DIGITS)).substring(0, NANO_DIGITS);
    return Instant.ofEpochSecond(seconds, Long.parseLong(nanos));
  }

  private static long seconds(Matcher time, int hours) {
    return Long.parseLong(time.group(hours)) * 3_600 + Long.parseLong(time.group(hours + 1)) * 60;
  }

  /**
   * The field that a member stands for. In JSON of XML an attribute has the name of its field behind an @, and the text
   * beside attributes stands for a field 'value' or 'text', if there is only one of them.
   */
  static String field(String member, boolean fromXml, Predicate<String> isField) {
    if (isField.test(member)) {
      return member;
    }
    if (fromXml && member.equals("#text") && isField.test("value") != isField.test("text")) {
      return isField.test("value") ? "value" : "text";
    }
    return fromXml && member.startsWith("@") && isField.test(member.substring(1)) ? member.substring(1) : null;
  }
}
