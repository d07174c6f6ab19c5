package jmsbridge.predicate;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.TextNode;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import javax.xml.stream.XMLStreamReader;

/** JSON of one XML document; {@code routes/xml_to_json.py} is the same in Python. */
final class XmlToJson implements XmlReader.Handler {
  private static final ObjectMapper MAPPER = new ObjectMapper();

  /** An open element. */
  private record Open(String name, ObjectNode members, StringBuilder text) {
    Open(String name) {
      this(name, JsonNodeFactory.instance.objectNode(), new StringBuilder());
    }

    JsonNode value() {
      if (members.isEmpty()) {
        return TextNode.valueOf(text.toString());
      }
      return text.chars().allMatch(each -> " \t\r\n".indexOf(each) >= 0)
          ? members
          : members.put("#text", text.toString());
    }
  }

  private final List<Open> opened = new ArrayList<>(List.of(new Open("")));

  private final Bounds bounds;

  private XmlToJson(Bounds bounds) {
    this.bounds = bounds;
  }

  /** The JSON of a document. */
  static byte[] convert(byte[] content, Bounds bounds) throws UnconvertibleBodyException {
    XmlToJson run = new XmlToJson(bounds);
    try {
      if (content.length <= bounds.size()) {
        XmlReader.read(content, run);
        // As bytes, characters beyond 16 bits would become escapes.
        return MAPPER.writeValueAsString(run.opened.get(0).members).getBytes(StandardCharsets.UTF_8);
      }
    } catch (XmlReader.NotXmlException none) {
      // Says the same as of one that is too large.
    } catch (JsonProcessingException error) {
      throw new IllegalStateException(error);
    }
    throw new UnconvertibleBodyException(
        String.format(
            Locale.ROOT,
            "it is not XML without a DTD of at most %,d bytes, with elements nested at most %d deep",
            bounds.size(),
            bounds.depth()));
  }

  @Override
  public void start(XMLStreamReader reader) throws XmlReader.NotXmlException {
    if (opened.size() > bounds.depth()) {
      throw new XmlReader.NotXmlException();
    }
    Open element = new Open(XmlReader.local(reader.getLocalName()));
    for (int index = 0; index < reader.getAttributeCount(); index++) {
      String name = "@" + XmlReader.local(reader.getAttributeLocalName(index));
      if (!XmlReader.isNamespace(reader, index) && !element.members.has(name)) {
        element.members.put(name, reader.getAttributeValue(index));
      }
    }
    opened.add(element);
  }

  @Override
  public void end() {
    Open element = opened.remove(opened.size() - 1);
    ObjectNode parent = opened.get(opened.size() - 1).members;
    JsonNode value = element.value();
    JsonNode former = parent.get(element.name);
    if (former == null) {
      parent.set(element.name, value);
    } else if (former instanceof ArrayNode several) {
      several.add(value);
    } else {
      parent.set(element.name, JsonNodeFactory.instance.arrayNode().add(former).add(value));
    }
  }

  @Override
  public void characters(XMLStreamReader reader) {
    opened.get(opened.size() - 1).text.append(
        reader.getTextCharacters(), reader.getTextStart(), reader.getTextLength());
  }
}
