package jmsbridge.predicate;

import java.io.StringReader;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import javax.xml.stream.XMLInputFactory;
import javax.xml.stream.XMLStreamConstants;
import javax.xml.stream.XMLStreamException;
import javax.xml.stream.XMLStreamReader;

/**
 * Reader of an XML document that keeps what paths ask for, in one pass.
 *
 * <p>Names are local ones, whatever namespace their prefix stands for. A document with a DTD is not read, so that no
 * entity can make it larger than it is. {@code routes/predicate/xml_document.py} is the same in Python.
 */
final class XmlReader {
  /** Receiver of what a document consists of. */
  interface Handler {
    /** Takes the element that begins at the place of the reader. */
    void start(XMLStreamReader reader) throws NotXmlException;

    /** Ends the last open element. */
    void end();

    /** Takes the text at the place of the reader. */
    void characters(XMLStreamReader reader);
  }

  /** Thrown for a text that is not XML, has a DTD, or is nested too deeply. */
  static final class NotXmlException extends Exception {
    private static final long serialVersionUID = 1L;

    NotXmlException() {
      super("not XML", null, false, false);
    }
  }

  /** Element with what is asked of it; a null text is not asked for. */
  static final class Element {
    final Map<String, String> attributes = new HashMap<>();
    final Map<String, List<Element>> children = new HashMap<>();
    StringBuilder text;
    StringBuilder ownText;
  }

  private static final Pattern LATIN =
      Pattern.compile("<\\?xml[^>]{0,200}?encoding\\s*=\\s*[\"']iso-8859-1[\"']", Pattern.CASE_INSENSITIVE);
  private static final int DECLARATION_BYTES = 400;
  private static final ThreadLocal<XMLInputFactory> FACTORY = ThreadLocal.withInitial(XmlReader::factory);

  /** An open element: what is asked of it, and where that is kept; both null if nothing is. */
  private record Open(XmlPaths.Wanted wanted, Element element) {}

  private final int deepest;
  private final List<Open> opened = new ArrayList<>();
  private final List<StringBuilder> texts = new ArrayList<>();

  XmlReader(int deepest) {
    this.deepest = deepest;
  }

  private static XMLInputFactory factory() {
    XMLInputFactory factory = XMLInputFactory.newDefaultFactory();
    factory.setProperty(XMLInputFactory.SUPPORT_DTD, false);
    factory.setProperty(XMLInputFactory.IS_SUPPORTING_EXTERNAL_ENTITIES, false);
    factory.setProperty(XMLInputFactory.IS_NAMESPACE_AWARE, false);
    // The size of a body bounds them all.
    factory.setProperty("jdk.xml.maxXMLNameLimit", "0");
    factory.setProperty("jdk.xml.elementAttributeLimit", "0");
    return factory;
  }

  /** The document, as an element around the root. */
  Element read(byte[] content, XmlPaths.Wanted wanted) throws NotXmlException {
    Element document = new Element();
    opened.add(new Open(wanted, document));
    read(content, new Kept());
    return document;
  }

  /** Handler that keeps what is asked for. */
  private final class Kept implements Handler {
    @Override
    public void start(XMLStreamReader reader) throws NotXmlException {
      XmlReader.this.start(reader);
    }

    @Override
    public void end() {
      XmlReader.this.end();
    }

    @Override
    public void characters(XMLStreamReader reader) {
      XmlReader.this.characters(reader);
    }
  }

  /** Gives all of a document to a handler. */
  static void read(byte[] content, Handler handler) throws NotXmlException {
    try {
      XMLStreamReader reader = FACTORY.get().createXMLStreamReader(new StringReader(decoded(content)));
      while (reader.hasNext()) {
        switch (reader.next()) {
          case XMLStreamConstants.START_ELEMENT:
            handler.start(reader);
            break;
          case XMLStreamConstants.END_ELEMENT:
            handler.end();
            break;
          case XMLStreamConstants.CHARACTERS, XMLStreamConstants.CDATA, XMLStreamConstants.SPACE:
            handler.characters(reader);
            break;
          case XMLStreamConstants.DTD, XMLStreamConstants.ENTITY_REFERENCE:
            throw new NotXmlException();
          default:
            break;
        }
      }
    } catch (XMLStreamException | RuntimeException error) {
      // The JDK's reader throws unchecked exceptions for some faults of a document, too.
      throw new NotXmlException();
    }
  }

  private void start(XMLStreamReader reader) throws NotXmlException {
    if (opened.size() > deepest) {
      throw new NotXmlException();
    }
    Open parent = opened.get(opened.size() - 1);
    String name = local(reader.getLocalName());
    XmlPaths.Wanted wanted = parent.wanted == null ? null : parent.wanted.children.get(name);
    Element element = wanted == null ? null : new Element();
    opened.add(new Open(wanted, element));
    if (wanted == null) {
      return;
    }
    parent.element.children.computeIfAbsent(name, unused -> new ArrayList<>()).add(element);
    for (int index = 0; !wanted.attributes.isEmpty() && index < reader.getAttributeCount(); index++) {
      String attribute = local(reader.getAttributeLocalName(index));
      if (wanted.attributes.contains(attribute) && !isNamespace(reader, index)) {
        element.attributes.putIfAbsent(attribute, reader.getAttributeValue(index));
      }
    }
    element.ownText = wanted.hasOwnText ? new StringBuilder() : null;
    if (wanted.hasText) {
      element.text = new StringBuilder();
      texts.add(element.text);
    }
  }

  private void end() {
    Element element = opened.remove(opened.size() - 1).element;
    if (element != null && element.text != null) {
      texts.remove(texts.size() - 1);
    }
  }

  private void characters(XMLStreamReader reader) {
    Element element = opened.get(opened.size() - 1).element;
    if (texts.isEmpty() && (element == null || element.ownText == null)) {
      return;
    }
    char[] characters = reader.getTextCharacters();
    int start = reader.getTextStart();
    int length = reader.getTextLength();
    texts.forEach(text -> text.append(characters, start, length));
    if (element != null && element.ownText != null) {
      element.ownText.append(characters, start, length);
    }
  }

  /** The part of a name behind its prefix. */
  static String local(String name) {
    return name.substring(name.lastIndexOf(':') + 1);
  }

  /** True for an attribute that declares a namespace. */
  static boolean isNamespace(XMLStreamReader reader, int index) {
    return local(reader.getAttributeLocalName(index)).equals("xmlns") || "xmlns".equals(reader.getAttributePrefix(index));
  }

  /**
   * The text of a document. Bytes that are UTF-8 are read as such, whatever the document declares: a text message has
   * lost its encoding. Other bytes are UTF-16 if they begin with its mark, or ISO-8859-1 if the document declares it.
   */
  private static String decoded(byte[] content) throws NotXmlException {
    int first = content.length < 2 ? 0 : (content[0] & 0xff) << 8 | content[1] & 0xff;
    boolean isMarked = first == 0xfffe || first == 0xfeff;
    try {
      String text = decoded(content, isMarked ? StandardCharsets.UTF_16 : StandardCharsets.UTF_8);
      return !isMarked && text.startsWith("\ufeff") ? text.substring(1) : text;
    } catch (CharacterCodingException error) {
      int length = Math.min(content.length, DECLARATION_BYTES);
      if (!LATIN.matcher(new String(content, 0, length, StandardCharsets.ISO_8859_1)).lookingAt()) {
        throw new NotXmlException();
      }
      return new String(content, StandardCharsets.ISO_8859_1);
    }
  }

  private static String decoded(byte[] content, Charset charset) throws CharacterCodingException {
    return charset.newDecoder().decode(ByteBuffer.wrap(content)).toString();
  }
}
