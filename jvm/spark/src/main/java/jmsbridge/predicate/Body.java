package jmsbridge.predicate;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import jmsbridge.serdes.BodyOrigin;
import jmsbridge.serdes.Document;
import jmsbridge.serdes.Documents;
import jmsbridge.serdes.UnfitValueException;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Body of one record as predicates see it, read when one first asks for it.
 *
 * <p>{@code routes/predicate/bodies.py} is the same in Python.
 */
final class Body {
  /** Formats that paths lead into. */
  enum Format {
    JSON,
    XML,
    AVRO,
    PROTOBUF;

    static Format of(String name) {
      return valueOf(name.toUpperCase(Locale.ROOT));
    }

    private boolean hasSchema() {
      return this == AVRO || this == PROTOBUF;
    }
  }

  private static final UTF8String SOURCE = UTF8String.fromString("jmsbridge.source");
  private static final UTF8String KIND = UTF8String.fromString("jmsbridge.body");

  private final BodyPaths paths;
  private final Documents documents;
  private final Bounds bounds;
  private final ArrayData headers;
  private final boolean isMissing;
  /** The body; null if there is none to be read. */
  private final byte[] content;
  /** Format of the schema that the body has; null: it has none that could be used. */
  private String schemaType;
  /** Why a body that begins as one with a schema does cannot be read. */
  private String schemaFault;
  private Object document;
  private boolean isJson;
  private boolean isRead;
  private XmlReader.Element xml;
  private boolean xmlIsRead;

  /**
   * Body of a record.
   *
   * @param documents reader of bodies with a schema; null: they have no values
   * @param bounds sizes beyond which the body is not read
   * @param headers headers of the record; null: none
   * @param content null: the record has none
   */
  Body(BodyPaths paths, Documents documents, Bounds bounds, ArrayData headers, byte[] content) {
    this.paths = paths;
    this.documents = documents;
    this.bounds = bounds;
    this.headers = headers;
    isMissing = content == null;
    this.content = content == null || content.length > bounds.size() ? null : content;
  }

  /** The whole body; null if it is too large, or is not UTF-8. */
  Value text() {
    UTF8String text = content == null ? null : UTF8String.fromBytes(content);
    return text == null || !text.isValid() ? null : Value.text(text);
  }

  /** The reason why the body cannot be read as a format; null if it can. */
  String fault(Format format) {
    if (isMissing) {
      return "there is no body";
    }
    if (content == null) {
      return String.format(Locale.ROOT, "the body has more than %,d bytes", bounds.size());
    }
    if (format == Format.XML) {
      return xml() == null ? isNot(format) : null;
    }
    document();
    if (schemaFault != null) {
      return schemaFault;
    }
    if (format.hasSchema() && schemaType == null) {
      return "the body has no schema: its first byte is not 0, as in Confluent's wire format";
    }
    if (schemaType != null && !schemaType.equals(format.name())) {
      return "the body is a value with a schema of " + schemaType + " and not of " + format;
    }
    return isJson ? null : isNot(format);
  }

  private String isNot(Format format) {
    return "the body is not " + format + ", or is nested more than " + bounds.depth() + " deep";
  }

  /** The value that a path names, the first of several in XML; null if there is none. */
  Value value(int path) {
    if (paths.isXml(path)) {
      return xmlValues(path).get(0);
    }
    Object document = document();
    for (JsonPaths.Step step : paths.steps(path)) {
      document = next(document, step);
    }
    return document instanceof Value value ? value : null;
  }

  /** The values that a path names; the last is null if there are too many. XML without a value has null alone. */
  List<Value> values(int path) {
    if (paths.isXml(path)) {
      return xmlValues(path);
    }
    List<Value> values = new ArrayList<>();
    if (!collect(document(), paths.steps(path), 0, values)) {
      values.add(null);
    }
    return values;
  }

  private List<Value> xmlValues(int path) {
    List<Value> values = new ArrayList<>();
    XmlReader.Element root = xml();
    if (root != null && !collect(root, paths.xmlPath(path), 0, values) || values.isEmpty()) {
      values.add(null);
    }
    return values;
  }

  private boolean collect(XmlReader.Element element, XmlPaths.Path path, int step, List<Value> values) {
    if (step < path.steps().length) {
      XmlPaths.Step asked = path.steps()[step];
      List<XmlReader.Element> named = element.children.getOrDefault(asked.name(), List.of());
      int first = asked.position() < 0 ? named.size() - 1 : Math.max(asked.position() - 1, 0);
      int end = asked.position() == 0 ? named.size() : Math.min(first + 1, named.size());
      for (int index = Math.max(first, 0); index < end; index++) {
        if (!collect(named.get(index), path, step + 1, values)) {
          return false;
        }
      }
      return true;
    }
    String text = text(element, path);
    if (text != null && values.size() == bounds.elements()) {
      return false;
    }
    if (text != null) {
      values.add(path.isNumber() ? number(Numbers.decimal(text)) : Value.text(UTF8String.fromString(text)));
    }
    return true;
  }

  private static Value number(BigDecimal number) {
    return number == null ? null : Value.decimal(number);
  }

  private static String text(XmlReader.Element element, XmlPaths.Path path) {
    if (path.attribute() != null) {
      return element.attributes.get(path.attribute());
    }
    StringBuilder text = path.isOwnText() ? element.ownText : element.text;
    return path.isOwnText() && text.isEmpty() ? null : text.toString();
  }

  private boolean collect(Object value, JsonPaths.Step[] steps, int first, List<Value> values) {
    Object reached = value;
    for (int index = first; index < steps.length; index++) {
      if (steps[index].kind() == JsonPaths.Kind.EACH) {
        for (Object element : reached instanceof List<?> list ? list : List.of()) {
          if (!collect(element, steps, index + 1, values)) {
            return false;
          }
        }
        return true;
      }
      reached = next(reached, steps[index]);
    }
    if (values.size() == bounds.elements()) {
      return false;
    }
    values.add(reached instanceof Value known ? known : null);
    return true;
  }

  /** The field or element to which a step leads; null if there is none. */
  private static Object next(Object value, JsonPaths.Step step) {
    if (step.kind() == JsonPaths.Kind.FIELD) {
      return value instanceof Object[] fields ? fields[step.index()] : null;
    }
    if (!(value instanceof List<?> list)) {
      return null;
    }
    int index = step.index() < 0 ? list.size() + step.index() : step.index();
    return index < 0 || index >= list.size() ? null : list.get(index);
  }

  private Object document() {
    if (!isRead) {
      isRead = true;
      try {
        byte[] json = json();
        document = json == null ? null : new JsonScanner(json, bounds.depth()).read(paths.json.root);
        isJson = json != null;
      } catch (JsonScanner.NotJsonException none) {
        document = null;
      }
    }
    return document;
  }

  /** The JSON of the body: itself, or the content of one with a schema; null if there is none. */
  private byte[] json() {
    BodyOrigin origin = documents == null || content == null ? null : origin(documents, headers, content);
    if (origin == null || !documents.haveSchema(content, origin)) {
      return content;
    }
    try {
      Document decoded = documents.read(content, origin);
      schemaType = decoded.type();
      return decoded.json();
    } catch (UnfitValueException unreadable) {
      schemaFault = unreadable.getMessage();
      return null;
    }
  }

  /** Whether a body has a schema; without {@code documents} none has. */
  static boolean hasSchema(Documents documents, ArrayData headers, byte[] content) {
    return documents != null && content != null
        && documents.haveSchema(content, origin(documents, headers, content));
  }

  /** The origin of a body; none if it does not count. A body without a kind has the one that its bytes show. */
  static BodyOrigin origin(Documents documents, ArrayData headers, byte[] content) {
    UTF8String source = documents.areOfSources() ? HeaderText.first(headers, SOURCE) : null;
    if (source == null) {
      return BodyOrigin.NONE;
    }
    UTF8String kind = HeaderText.first(headers, KIND);
    if (kind == null) {
      return new BodyOrigin(source.toString(), UTF8String.fromBytes(content).isValid() ? "text" : "bytes");
    }
    return new BodyOrigin(source.toString(), kind.toString());
  }

  private XmlReader.Element xml() {
    if (!xmlIsRead) {
      xmlIsRead = true;
      try {
        xml = content == null ? null : new XmlReader(bounds.depth()).read(content, paths.xml.root);
      } catch (XmlReader.NotXmlException none) {
        xml = null;
      }
    }
    return xml;
  }
}
