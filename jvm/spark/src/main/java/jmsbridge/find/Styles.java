package jmsbridge.find;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import jmsbridge.kafka.HeaderArray;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Styles in which routes publish headers: brings those of the styles short and typed back into that of the journal,
 * which predicates read. One thread uses an object.
 */
final class Styles {
  private static final String JMS = "jms.";

  private enum Style { TEXT, SHORT, TYPED }

  /** Headers of JMS fields in the style text, by those in the style short. */
  private final Map<String, String> fields = new HashMap<>();
  private final Set<UTF8String> textNames = new HashSet<>();
  private final Set<UTF8String> shortNames = new HashSet<>();
  private final Set<UTF8String> typedNames = new HashSet<>();
  private Style style = Style.TEXT;
  /** Places of which only the layout counts: that for which the style is known. */
  private HeaderArray.Places known = new HeaderArray.Places(null, new int[0]);

  Styles(JsonNode json) {
    json.get("short").properties().forEach(each -> fields.put(each.getKey(), each.getValue().asText()));
    fields.forEach((brief, name) -> {
      shortNames.add(UTF8String.fromString(brief));
      textNames.add(UTF8String.fromString(name));
    });
    json.get("typed").forEach(each -> typedNames.add(UTF8String.fromString(each.asText())));
  }

  /** The headers of a record, which `array` has, in the style of the journal; the same array if they are. */
  Header[] plain(HeaderArray array, Header[] given) {
    if (!known.isOf(array)) {
      known = array.find(textNames);
      style = known.indexes().length > 0 ? Style.TEXT : other(array);
    }
    return switch (style) {
      case TEXT -> given;
      case SHORT -> Arrays.stream(given).map(this::renamed).toArray(Header[]::new);
      case TYPED -> Arrays.stream(given).map(Styles::untyped).toArray(Header[]::new);
    };
  }

  private Style other(HeaderArray array) {
    if (array.find(typedNames).indexes().length > 0) {
      return Style.TYPED;
    }
    return array.find(shortNames).indexes().length > 0 ? Style.SHORT : Style.TEXT;
  }

  private Header renamed(Header header) {
    String name = fields.get(header.key());
    return name == null ? header : new RecordHeader(name, header.value());
  }

  private static Header untyped(Header header) {
    String name = header.key();
    int end = name.startsWith(JMS) ? name.indexOf('.', JMS.length()) : -1;
    if (end < 0 || header.value() == null) {
      return header;
    }
    String text = text(name.substring(JMS.length(), end), header.value());
    byte[] value = text == null ? header.value() : text.getBytes(StandardCharsets.UTF_8);
    return new RecordHeader(JMS + name.substring(end + 1), value);
  }

  /** Text of a value of a type; null if it is text already, or has another length than values of the type. */
  private static String text(String type, byte[] value) {
    ByteBuffer bytes = ByteBuffer.wrap(value);
    return switch (type + value.length) {
      case "byte1" -> Byte.toString(bytes.get());
      case "short2" -> Short.toString(bytes.getShort());
      case "int4" -> Integer.toString(bytes.getInt());
      case "long8" -> Long.toString(bytes.getLong());
      case "float4" -> Float.toString(bytes.getFloat());
      case "double8" -> Double.toString(bytes.getDouble());
      default -> type.equals("bytes") ? Base64.getEncoder().encodeToString(value) : null;
    };
  }
}
