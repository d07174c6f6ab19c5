package jmsbridge.predicate;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.StandardCharsets;

/**
 * Character set of bodies: a form of Unicode, or one byte for each character, by a table of
 * {@code routes/charsets.py}. A byte or character that it does not have is refused.
 */
final class BodyCharset {
  private static final String UTF_8 = "UTF-8";
  private static final String UTF_16 = "UTF-16";
  private static final String LITTLE_ENDIAN = "UTF-16LE";
  private static final char NO_CHARACTER = '\ufffe';
  private static final char MARK = '\ufeff';

  private final String name;
  /** Character of each byte; null for Unicode. */
  private final char[] characters;
  /** Byte of each character, which the other table has to confirm. */
  private final byte[] bytes;

  /** The set of a step. */
  BodyCharset(JsonNode step) {
    name = step.get("charset").asText();
    characters = step.get("table").isNull() ? null : step.get("table").asText().toCharArray();
    bytes = characters == null ? null : new byte[1 << Character.SIZE];
    for (int at = 0; characters != null && at < characters.length; at++) {
      bytes[characters[at]] = (byte) at;
    }
  }

  /** The body, which is text in this set, in UTF-8. */
  byte[] toUtf8(byte[] body) throws UnconvertibleBodyException {
    if (name.equals(UTF_8)) {
      utf8(body);
      return body;
    }
    return (characters == null ? utf16(body) : listed(body)).getBytes(StandardCharsets.UTF_8);
  }

  /** The body, which is text in UTF-8, in this set. */
  byte[] fromUtf8(byte[] body) throws UnconvertibleBodyException {
    CharBuffer text = utf8(body);
    if (name.equals(UTF_8)) {
      return body;
    }
    return characters == null ? utf16(text) : listed(text);
  }

  private String listed(byte[] body) throws UnconvertibleBodyException {
    char[] text = new char[body.length];
    for (int at = 0; at < body.length; at++) {
      text[at] = characters[body[at] & 0xff];
      if (text[at] == NO_CHARACTER) {
        throw noCharacter(body, at, name);
      }
    }
    return new String(text);
  }

  private byte[] listed(CharBuffer text) throws UnconvertibleBodyException {
    byte[] body = new byte[text.length()];
    for (int at = 0; at < body.length; at++) {
      char each = text.charAt(at);
      body[at] = bytes[each];
      if (characters[body[at] & 0xff] != each || each == NO_CHARACTER) {
        int place = Character.codePointCount(text, 0, at);
        throw new UnconvertibleBodyException(
            String.format("U+%04X at %d is not in %s", Character.codePointAt(text, at), place, name));
      }
    }
    return body;
  }

  private String utf16(byte[] body) throws UnconvertibleBodyException {
    boolean isMarked = name.equals(UTF_16) && body.length >= 2;
    boolean isTurned = isMarked && character(body, 0, true) == MARK;
    boolean isLittle = isTurned || name.equals(LITTLE_ENDIAN);
    int start = isTurned || isMarked && character(body, 0, false) == MARK ? 2 : 0;
    StringBuilder text = new StringBuilder(body.length / 2);
    for (int at = start; at < body.length; at += 2) {
      char each = at + 1 < body.length ? character(body, at, isLittle) : Character.MIN_SURROGATE;
      text.append(each);
      if (Character.isHighSurrogate(each) && at + 3 < body.length) {
        char second = character(body, at + 2, isLittle);
        if (Character.isLowSurrogate(second)) {
          text.append(second);
          at += 2;
          continue;
        }
      }
      if (Character.isSurrogate(each)) {
        throw noCharacter(body, at, name);
      }
    }
    return text.toString();
  }

  private byte[] utf16(CharBuffer text) {
    boolean isMarked = name.equals(UTF_16);
    ByteBuffer body = ByteBuffer.allocate(2 * text.length() + (isMarked ? 2 : 0));
    if (isMarked) {
      body.putChar(MARK);
    }
    for (int at = 0; at < text.length(); at++) {
      char each = text.charAt(at);
      body.putChar(name.equals(LITTLE_ENDIAN) ? Character.reverseBytes(each) : each);
    }
    return body.array();
  }

  private static char character(byte[] body, int at, boolean isLittle) {
    int low = body[isLittle ? at : at + 1] & 0xff;
    return (char) ((body[isLittle ? at + 1 : at] & 0xff) << 8 | low);
  }

  private static CharBuffer utf8(byte[] body) throws UnconvertibleBodyException {
    ByteBuffer left = ByteBuffer.wrap(body);
    CharBuffer text = CharBuffer.allocate(body.length);
    if (StandardCharsets.UTF_8.newDecoder().decode(left, text, true).isError()) {
      throw noCharacter(body, left.position(), UTF_8);
    }
    return text.flip();
  }

  private static UnconvertibleBodyException noCharacter(byte[] body, int at, String name) {
    return new UnconvertibleBodyException(
        String.format("byte 0x%02X at %d begins no character of %s", body[at], at, name));
  }
}
