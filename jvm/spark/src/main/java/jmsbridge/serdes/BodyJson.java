package jmsbridge.serdes;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadConstraints;
import java.io.IOException;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Reader of JSON bodies that are encoded: Map, List, String, Boolean, null and exact numbers.
 *
 * <p>Of several members with one name the last counts.
 */
final class BodyJson {
  static final int MOST_BYTES = 4 << 20;
  private static final int MOST_CHARACTERS = 1_000;
  private static final int MOST_EXPONENT_DIGITS = 9;
  /** Every text of so many digits, or of one fewer and a sign, is a long. */
  private static final int MOST_PLAIN = 18;
  private static final char REPLACEMENT = '\ufffd';
  /** A number in a body, or in a text of XML: ASCII digits, no blanks. */
  private static final Pattern NUMBER =
      Pattern.compile("[+-]?(?:[0-9]+(?:\\.[0-9]*+)?|\\.[0-9]+)(?:[eE][+-]?([0-9]+))?");
  private static final JsonFactory JSON = JsonFactory.builder()
      .disable(JsonFactory.Feature.CANONICALIZE_FIELD_NAMES)
      .streamReadConstraints(StreamReadConstraints.builder()
          .maxNumberLength(MOST_CHARACTERS).maxNameLength(MOST_BYTES).maxStringLength(MOST_BYTES).build())
      .build();

  /** A number as it is written. */
  record Written(String text) {
    BigDecimal exact() {
      return new BigDecimal(text);
    }

    /** The number, if it is written as an integer of a long with digits alone; otherwise null. */
    Long plain() {
      for (int index = text.startsWith("-") ? 1 : 0; index < text.length(); index++) {
        if (text.charAt(index) < '0' || text.charAt(index) > '9') {
          return null;
        }
      }
      return text.length() > MOST_PLAIN ? null : Long.valueOf(text);
    }
  }

  private BodyJson() {}

  /** The document; UnfitValueException if there is none, or it exceeds the bounds. */
  static Object read(byte[] json) {
    if (json.length > MOST_BYTES) {
      throw new UnfitValueException(String.format(Locale.ROOT, "the body has more than %,d bytes", MOST_BYTES));
    }
    try {
      String text = decoded(json);
      try (JsonParser parser = JSON.createParser(text.startsWith("\ufeff") ? text.substring(1) : text)) {
        Object document = value(parser, parser.nextToken(), 0);
        if (parser.nextToken() == null) {
          return document;
        }
      }
    } catch (IOException none) {
      throw isNot(none);
    }
    throw isNot(null);
  }

  private static String decoded(byte[] json) throws IOException {
    String text = new String(json, StandardCharsets.UTF_8);
    // A replacement may stand in the body itself; only the slower decoder tells.
    return text.indexOf(REPLACEMENT) < 0
        ? text
        : StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(json)).toString();
  }

  private static UnfitValueException isNot(IOException cause) {
    UnfitValueException fault = new UnfitValueException(String.format(Locale.ROOT,
        "the body is not JSON, is nested more than %d deep, or has a number of more than %,d characters or an exponent of"
            + " more than %d digits", Document.DEPTH, MOST_CHARACTERS, MOST_EXPONENT_DIGITS));
    fault.initCause(cause);
    return fault;
  }

  private static Object value(JsonParser parser, JsonToken token, int depth) throws IOException {
    if (token == null || depth == Document.DEPTH && token.isStructStart()) {
      throw isNot(null);
    }
    switch (token) {
      case START_OBJECT -> {
        Map<String, Object> members = new LinkedHashMap<>();
        while (parser.nextToken() != JsonToken.END_OBJECT) {
          String name = whole(parser.currentName());
          members.put(name, value(parser, parser.nextToken(), depth + 1));
        }
        return members;
      }
      case START_ARRAY -> {
        List<Object> elements = new ArrayList<>();
        for (JsonToken next = parser.nextToken(); next != JsonToken.END_ARRAY; next = parser.nextToken()) {
          elements.add(value(parser, next, depth + 1));
        }
        return elements;
      }
      case VALUE_STRING -> {
        return whole(parser.getText());
      }
      case VALUE_NULL -> {
        return null;
      }
      case VALUE_TRUE, VALUE_FALSE -> {
        return parser.getBooleanValue();
      }
      default -> {
        String text = parser.getText();
        boolean isPlain = token == JsonToken.VALUE_NUMBER_INT && text.length() <= MOST_PLAIN;
        Written written = isPlain ? new Written(text) : number(text);
        if (written == null) {
          throw isNot(null);
        }
        return written;
      }
    }
  }

  /** The number that a text writes; null for other texts. */
  static Written number(String text) {
    if (text.length() > MOST_CHARACTERS) {
      return null;
    }
    Matcher parts = NUMBER.matcher(text);
    boolean isShort = parts.matches() && (parts.group(1) == null || parts.group(1).length() <= MOST_EXPONENT_DIGITS);
    return isShort ? new Written(text) : null;
  }

  /** The text with a replacement for each half of a character that stands alone. */
  private static String whole(String text) {
    for (int index = 0; index < text.length(); index++) {
      if (Character.isSurrogate(text.charAt(index))) {
        return new String(text.getBytes(StandardCharsets.UTF_16BE), StandardCharsets.UTF_16BE);
      }
    }
    return text;
  }
}
