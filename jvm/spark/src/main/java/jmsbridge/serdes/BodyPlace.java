package jmsbridge.serdes;

import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Pattern;

/**
 * Place of a value in a body, which is spelled as in the routing language when a fault names it.
 *
 * @param parent place of the object or array around the value; null: the value is the body
 * @param step name of the member, or number of the element
 */
record BodyPlace(BodyPlace parent, Object step) {
  static final BodyPlace BODY = new BodyPlace(null, null);
  private static final int MOST_CHARACTERS = 40;
  private static final Pattern PLAIN = Pattern.compile("[A-Za-z_][A-Za-z0-9_]*");
  /** As in {@code engine/printable.py}. */
  private static final Pattern CONTROL =
      Pattern.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069]");

  BodyPlace member(String name) {
    return new BodyPlace(this, name);
  }

  BodyPlace element(int index) {
    return new BodyPlace(this, index);
  }

  /** The fault of a value that is not what the schema wants. */
  UnfitValueException isNot(Object value, String wanted) {
    return fault("%s is not %s".formatted(shown(value), wanted));
  }

  UnfitValueException fault(String reason) {
    StringBuilder path = new StringBuilder();
    for (BodyPlace place = this; place != null; place = place.parent) {
      path.insert(0, place.spelled());
    }
    return new UnfitValueException("%s does not fit: %s".formatted(path, reason));
  }

  private String spelled() {
    if (parent == null) {
      return "msg.body";
    }
    if (step instanceof Integer) {
      return "[" + step + "]";
    }
    String text = shortened((String) step);
    return "." + (PLAIN.matcher(text).matches() ? text : '"' + text.replace("\"", "\"\"") + '"');
  }

  private static String shown(Object value) {
    if (value instanceof Map) {
      return "an object";
    }
    if (value instanceof List) {
      return "an array";
    }
    if (value instanceof String text) {
      return "'" + shortened(text) + "'";
    }
    return value instanceof BodyJson.Written number ? shortened(number.text()) : String.valueOf(value);
  }

  private static String shortened(String text) {
    // Most characters have one unit of 16 bits, none has more than two.
    boolean isLong = text.length() > MOST_CHARACTERS && text.codePointCount(0, text.length()) > MOST_CHARACTERS;
    String shown = isLong ? text.substring(0, text.offsetByCodePoints(0, MOST_CHARACTERS)) + "…" : text;
    return CONTROL.matcher(shown).replaceAll(found -> {
      int sign = found.group().charAt(0);
      return String.format(Locale.ROOT, sign > 0xff ? "\\\\u%04x" : sign == '\r' ? "\\\\r" : "\\\\x%02x", sign);
    });
  }
}
