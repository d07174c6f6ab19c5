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
    for (int index = 0; characters != null && index < characters.length; index++) {
      bytes[characters[index]] = (byte) index;
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
    for (int index = 0; index < body.length; index++) {
      text[index] = characters[body[index] & 0xff];
      if (text[index] == NO_CHARACTER) {
        throw noCharacter(body, index, name);
      }
    }
    return new String(text);
  }

  private byte[] listed(CharBuffer text) throws UnconvertibleBodyException {
    byte[] body = new byte[text.length()];
    for (int index = 0; index < body.length; index++) {
      char character = text.charAt(index);
      body[index] = bytes[character];
      if (characters[body[index] & 0xff] != character || character == NO_CHARACTER) {
        int place = Character.codePointCount(text, 0, index);
        throw new UnconvertibleBodyException(
            String.format("U+%04X at %d is not in %s", Character.codePointAt(text, index), place, name));
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
    for (int index = start; index < body.length; index += 2) {
      char unit = index + 1 < body.length ? character(body, index, isLittle) : Character.MIN_SURROGATE;
      text.append(unit);
      if (Character.isHighSurrogate(unit) && index + 3 < body.length) {
        char second = character(body, index + 2, isLittle);
        if (Character.isLowSurrogate(second)) {
          text.append(second);
          index += 2;
          continue;
        }
      }
      if (Character.isSurrogate(unit)) {
        throw noCharacter(body, index, name);
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
    for (int index = 0; index < text.length(); index++) {
      char character = text.charAt(index);
      body.putChar(name.equals(LITTLE_ENDIAN) ? Character.reverseBytes(character) : character);
    }
    return body.array();
  }

  private static char character(byte[] body, int index, boolean isLittle) {
    int low = body[isLittle ? index : index + 1] & 0xff;
    return (char) ((body[isLittle ? index + 1 : index] & 0xff) << 8 | low);
  }

  private static CharBuffer utf8(byte[] body) throws UnconvertibleBodyException {
    ByteBuffer left = ByteBuffer.wrap(body);
    CharBuffer text = CharBuffer.allocate(body.length);
    if (StandardCharsets.UTF_8.newDecoder().decode(left, text, true).isError()) {
      throw noCharacter(body, left.position(), UTF_8);
    }
    return text.flip();
  }

  private static UnconvertibleBodyException noCharacter(byte[] body, int index, String name) {
    return new UnconvertibleBodyException(
        String.format("byte 0x%02X at %d begins no character of %s", body[index], index, name));
  }
}
