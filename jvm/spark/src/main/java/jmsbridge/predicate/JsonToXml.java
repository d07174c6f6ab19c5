package jmsbridge.predicate;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** XML document of one JSON text; {@code routes/json_to_xml.py} is the same in Python. */
final class JsonToXml {
  private static final String TEXT = "#text";
  private static final String START =
      "A-Z_a-z\\xc0-\\xd6\\xd8-\\xf6\\xf8-\\u02ff\\u0370-\\u037d\\u037f-\\u1fff\\u200c-\\u200d\\u2070-\\u218f"
          + "\\u2c00-\\u2fef\\u3001-\\ud7ff\\uf900-\\ufdcf\\ufdf0-\\ufffd\\x{10000}-\\x{effff}";
  /** Names without a prefix (XML 1.0, fifth edition, section 2.3). */
  private static final Pattern NAME =
      Pattern.compile("[" + START + "][" + START + ".0-9\\xb7\\u0300-\\u036f\\u203f-\\u2040-]*+");
  private static final Pattern FORBIDDEN = Pattern.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\ufffe\\uffff]");
  private static final int LONGEST_QUOTE = 40;

  private final ByteArrayOutputStream written = new ByteArrayOutputStream();

  private JsonToXml() {}

  /** The document of which {@link XmlToJson} makes a text. */
  static byte[] convert(byte[] content, Bounds bounds) throws UnconvertibleBodyException {
    if (!(document(content, bounds) instanceof Map<?, ?> members) || members.size() != 1) {
      throw new UnconvertibleBodyException("it is not an object with one member, the root element");
    }
    Map.Entry<?, ?> root = members.entrySet().iterator().next();
    String name = (String) root.getKey();
    if (root.getValue() instanceof List) {
      throw new UnconvertibleBodyException("the root element " + quoted(name) + " is an array");
    }
    JsonToXml run = new JsonToXml();
    run.elements(name, root.getValue());
    return run.written.toByteArray();
  }

  private static Object document(byte[] content, Bounds bounds) throws UnconvertibleBodyException {
    try {
      if (content.length <= bounds.size()) {
        JsonScanner scanner = new JsonScanner(content, bounds.depth());
        scanner.skipBlanks();
        Object document = value(scanner, content);
        scanner.end();
        return document;
      }
    } catch (JsonScanner.NotJsonException none) {
      // Says the same as of one that is too large.
    }
    throw new UnconvertibleBodyException(
        String.format(
            Locale.ROOT,
            "it is not JSON of at most %,d bytes, with values nested at most %d deep",
            bounds.size(),
            bounds.depth()));
  }

  /** The next value: an object as a map, an array as a list, and the text of any other. */
  private static Object value(JsonScanner scanner, byte[] content) throws JsonScanner.NotJsonException {
    byte first = scanner.peek();
    if (first == '{') {
      Map<String, Object> members = new LinkedHashMap<>();
      if (scanner.enter('}')) {
        do {
          String name = scanner.name().toString();
          members.put(name, value(scanner, content));
        } while (scanner.isNext());
      }
      scanner.leave('}');
      return members;
    }
    if (first == '[') {
      List<Object> elements = new ArrayList<>();
      if (scanner.enter(']')) {
        do {
          elements.add(value(scanner, content));
        } while (scanner.isNext());
      }
      scanner.leave(']');
      return elements;
    }
    int start = scanner.place();
    scanner.skip();
    if (first == '"') {
      return scanner.characters(start + 1, scanner.place() - 1, false).toString();
    }
    return first == 'n' ? "" : new String(content, start, scanner.place() - start, StandardCharsets.US_ASCII);
  }

  /** Writes the element of a value, or one for each value of an array. */
  private void elements(String name, Object value) throws UnconvertibleBodyException {
    checkName(name, name, "an element");
    for (Object item : value instanceof List<?> several ? several : List.of(value)) {
      if (item instanceof List) {
        throw new UnconvertibleBodyException("the array " + quoted(name) + " has an array in it");
      }
      element(name, item instanceof Map<?, ?> members ? members : Map.of(TEXT, item));
    }
  }

  private void element(String name, Map<?, ?> members) throws UnconvertibleBodyException {
    write("<" + name);
    for (Map.Entry<?, ?> member : members.entrySet()) {
      String key = (String) member.getKey();
      if (key.startsWith("@")) {
        checkName(key, key.substring(1), "an attribute");
        write(" " + key.substring(1) + "=\"" + escaped(scalar(key, member.getValue()), true) + "\"");
      }
    }
    write(">");
    for (Map.Entry<?, ?> member : members.entrySet()) {
      String key = (String) member.getKey();
      if (!key.startsWith("@") && !key.equals(TEXT)) {
        elements(key, member.getValue());
      }
    }
    Object text = members.get(TEXT);
    if (text != null) {
      write(escaped(scalar(TEXT, text), false));
    }
    write("</" + name + ">");
  }

  private void write(String text) throws UnconvertibleBodyException {
    byte[] part = text.getBytes(StandardCharsets.UTF_8);
    if (written.size() + part.length > UnconvertibleBodyException.LARGEST) {
      throw UnconvertibleBodyException.tooLarge();
    }
    written.writeBytes(part);
  }

  private static void checkName(String member, String name, String role) throws UnconvertibleBodyException {
    // As an attribute it would declare a namespace.
    if (!NAME.matcher(name).matches() || member.equals("@xmlns")) {
      throw new UnconvertibleBodyException(quoted(member) + " cannot be the name of " + role);
    }
  }

  /** The text of a value that has no members. */
  private static String scalar(String name, Object value) throws UnconvertibleBodyException {
    if (!(value instanceof String text)) {
      throw new UnconvertibleBodyException(quoted(name) + " is an object or array and not a text");
    }
    Matcher forbidden = FORBIDDEN.matcher(text);
    if (forbidden.find()) {
      int character = forbidden.group().charAt(0);
      throw new UnconvertibleBodyException(String.format(Locale.ROOT, "U+%04X cannot stand in XML", character));
    }
    return text;
  }

  private static String escaped(String text, boolean isAttribute) {
    StringBuilder escaped = new StringBuilder(text.length());
    for (int index = 0; index < text.length(); index++) {
      char next = text.charAt(index);
      switch (next) {
        case '&' -> escaped.append("&amp;");
        case '<' -> escaped.append("&lt;");
        case '>' -> escaped.append("&gt;");
        case '\r' -> escaped.append("&#13;");
        case '"' -> escaped.append(isAttribute ? "&quot;" : "\"");
        case '\t' -> escaped.append(isAttribute ? "&#9;" : "\t");
        case '\n' -> escaped.append(isAttribute ? "&#10;" : "\n");
        default -> escaped.append(next);
      }
    }
    return escaped.toString();
  }

  /** The beginning of a name as ASCII, whatever it holds. */
  private static String quoted(String name) {
    StringBuilder start = new StringBuilder("'");
    name.codePoints().limit(LONGEST_QUOTE).forEach(each -> {
      if (each >= ' ' && each <= '~') {
        start.append((char) each);
      } else {
        start.append(String.format(Locale.ROOT, "\\u%04x", each));
      }
    });
    boolean isCut = name.codePointCount(0, name.length()) > LONGEST_QUOTE;
    return start.append(isCut ? "…" : "").append('\'').toString();
  }
}
