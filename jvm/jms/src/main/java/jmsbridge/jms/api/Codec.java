package jmsbridge.jms.api;

import jakarta.jms.BytesMessage;
import jakarta.jms.DeliveryMode;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageEOFException;
import jakarta.jms.ObjectMessage;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.StreamMessage;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import jmsbridge.jms.Buffer;
import jmsbridge.jms.Main;
import jmsbridge.jms.Texts;
import jmsbridge.jms.Texts.Entry;

/**
 * Messages as bytes of a frame, in both directions.
 *
 * <p>To the worker: size of the body as sent (u64), a letter for the body, texts with names and values by turns, and the body
 * with its length. The first letter of a value is its type; `H` marks a field of JMS, and the empty name a fault.
 */
final class Codec {
  /** Letters of bodies. */
  static final char TEXT = 't', BYTES = 'b', MAP = 'm', STREAM = 's', OBJECT = 'o', VALUE = 'v', PLAIN = 'n';

  private final long mostBytes;
  private final int keptBytes;
  private final String address;
  private final String kind;
  private boolean hasDeliveryTime = true;

  Codec(long mostBytes, int keptBytes, String address) {
    this.mostBytes = mostBytes;
    this.keptBytes = keptBytes;
    this.address = address;
    kind = address.substring(0, address.indexOf(':'));
  }

  /** Appends a message; one that cannot be read is appended with its fault. */
  void write(Buffer out, Message message) {
    int start = out.size();
    List<String> texts = new ArrayList<>();
    try {
      fields(message, texts);
      properties(message, texts);
      body(out, message, texts);
    } catch (JMSException | RuntimeException error) {
      out.truncate(start);
      if (!texts.contains("JMSDestination")) {
        texts.addAll(List.of("JMSDestination", "H" + address));
      }
      texts.addAll(List.of("", "F" + Main.text(error)));
      head(out, 0, BYTES, texts);
      out.sized(new byte[0]);
    }
  }

  private void fields(Message message, List<String> texts) throws JMSException {
    field(texts, "JMSMessageID", message.getJMSMessageID());
    String to = address(message.getJMSDestination(), kind);
    field(texts, "JMSDestination", to == null ? address : to);
    field(texts, "JMSReplyTo", address(message.getJMSReplyTo(), "queue"));
    field(texts, "JMSCorrelationID", message.getJMSCorrelationID());
    field(texts, "JMSType", message.getJMSType());
    boolean isPersistent = message.getJMSDeliveryMode() == DeliveryMode.PERSISTENT;
    field(texts, "JMSDeliveryMode", isPersistent ? "PERSISTENT" : "NON_PERSISTENT");
    field(texts, "JMSPriority", String.valueOf(message.getJMSPriority()));
    time(texts, "JMSTimestamp", message.getJMSTimestamp());
    time(texts, "JMSExpiration", message.getJMSExpiration());
    field(texts, "JMSRedelivered", String.valueOf(message.getJMSRedelivered()));
    if (hasDeliveryTime) {
      try {
        time(texts, "JMSDeliveryTime", message.getJMSDeliveryTime());
      } catch (AbstractMethodError | NoSuchMethodError ofJms11) {
        hasDeliveryTime = false;
      }
    }
  }

  private static void field(List<String> texts, String name, String value) {
    if (value != null) {
      texts.add(name);
      texts.add("H" + value);
    }
  }

  private static void time(List<String> texts, String name, long value) {
    if (value > 0) {
      field(texts, name, String.valueOf(value));
    }
  }

  private static void properties(Message message, List<String> texts) throws JMSException {
    for (Object each : Collections.list(message.getPropertyNames())) {
      String name = (String) each;
      Object value = message.getObjectProperty(name);
      switch (name) {
        case "JMSXGroupID", "JMSXGroupSeq", "JMSXDeliveryCount", "JMSXUserID" ->
            field(texts, name, value == null ? null : value.toString());
        default -> {
          if (value != null) {
            texts.add(name);
            texts.add(value instanceof byte[] bytes ? "B" + base64(bytes) : type(value) + value.toString());
          }
        }
      }
    }
  }

  private static String base64(byte[] bytes) {
    return java.util.Base64.getEncoder().encodeToString(bytes);
  }

  private void body(Buffer out, Message message, List<String> texts) throws JMSException {
    if (message instanceof TextMessage text) {
      String found = text.getText();
      opaque(out, TEXT, found == null ? new byte[0] : Texts.bytes(found), texts);
    } else if (message instanceof BytesMessage bytes) {
      long length = bytes.getBodyLength();
      byte[] found = new byte[(int) (length > mostBytes ? keptBytes : length)];
      bytes.readBytes(found);
      head(out, length, BYTES, texts);
      out.sized(found);
    } else if (message instanceof MapMessage map) {
      List<Entry> entries = new ArrayList<>();
      for (Object name : Collections.list(map.getMapNames())) {
        entries.add(entry((String) name, map.getObject((String) name)));
      }
      structured(out, MAP, entries, texts);
    } else if (message instanceof StreamMessage stream) {
      List<Entry> entries = new ArrayList<>();
      try {
        while (true) {
          entries.add(entry("", stream.readObject()));
        }
      } catch (MessageEOFException end) {
        structured(out, STREAM, entries, texts);
      }
    } else if (message instanceof ObjectMessage object) {
      opaque(out, OBJECT, Opaque.bytes(object), texts);
    } else {
      opaque(out, PLAIN, new byte[0], texts);
    }
  }

  private void opaque(Buffer out, char letter, byte[] body, List<String> texts) {
    head(out, body.length, letter, texts);
    out.sized(body.length > mostBytes ? Arrays.copyOf(body, keptBytes) : body);
  }

  private static void structured(Buffer out, char letter, List<Entry> entries, List<String> texts) {
    Buffer body = new Buffer();
    Texts.writeEntries(body, entries);
    head(out, 0, letter, texts);
    out.u32(body.size());
    Texts.writeEntries(out, entries);
  }

  private static void head(Buffer out, long size, char letter, List<String> texts) {
    out.u64(size);
    out.u8(letter);
    Texts.write(out, texts);
  }

  private static Entry entry(String name, Object value) {
    byte[] bytes = value instanceof byte[] raw ? raw : Texts.bytes(String.valueOf(value));
    return new Entry(name, type(value), bytes);
  }

  private static char type(Object value) {
    if (value == null) {
      return 'N';
    } else if (value instanceof byte[]) {
      return 'B';
    } else if (value instanceof String) {
      return 'S';
    } else if (value instanceof Boolean) {
      return 'Z';
    } else if (value instanceof Byte) {
      return 'b';
    } else if (value instanceof Short) {
      return 's';
    } else if (value instanceof Integer) {
      return 'i';
    } else if (value instanceof Long) {
      return 'l';
    } else if (value instanceof Float) {
      return 'f';
    } else if (value instanceof Double) {
      return 'd';
    } else if (value instanceof Character) {
      return 'c';
    }
    // A provider's own type, which only its text can carry.
    return 'S';
  }

  /** A value of a type's letter. */
  static Object value(Entry entry) {
    return switch (entry.type()) {
      case 'N' -> null;
      case 'B' -> entry.value();
      case 'Z' -> Boolean.valueOf(entry.text());
      case 'b' -> Byte.valueOf(entry.text());
      case 's' -> Short.valueOf(entry.text());
      case 'i' -> Integer.valueOf(entry.text());
      case 'l' -> Long.valueOf(entry.text());
      case 'f' -> Float.valueOf(entry.text());
      case 'd' -> Double.valueOf(entry.text());
      case 'c' -> entry.text().charAt(0);
      default -> entry.text();
    };
  }

  /** `queue:NAME` or `topic:NAME`; `kind` where the object can be both. Null for no destination. */
  private static String address(Destination destination, String kind) throws JMSException {
    boolean isQueue = destination instanceof Queue && (kind.equals("queue") || !(destination instanceof Topic));
    if (isQueue) {
      return "queue:" + bare(((Queue) destination).getQueueName(), "queue:///");
    }
    return destination instanceof Topic topic ? "topic:" + bare(topic.getTopicName(), "topic://") : null;
  }

  /** The name without the form of a URI that IBM MQ gives it. */
  private static String bare(String name, String prefix) {
    if (name == null || !name.startsWith(prefix)) {
      return name;
    }
    int options = name.indexOf('?');
    return name.substring(prefix.length(), options < 0 ? name.length() : options);
  }

  /** Makes the message of a letter and a body. */
  static Message message(Session session, char letter, byte[] body) throws JMSException {
    switch (letter) {
      case TEXT:
        return session.createTextMessage(new String(body, java.nio.charset.StandardCharsets.UTF_8));
      case BYTES:
        BytesMessage bytes = session.createBytesMessage();
        bytes.writeBytes(body);
        return bytes;
      case MAP:
        MapMessage map = session.createMapMessage();
        for (Entry each : Texts.readEntries(ByteBuffer.wrap(body))) {
          map.setObject(each.name(), value(each));
        }
        return map;
      case STREAM:
        StreamMessage stream = session.createStreamMessage();
        for (Entry each : Texts.readEntries(ByteBuffer.wrap(body))) {
          stream.writeObject(value(each));
        }
        return stream;
      case VALUE:
        return session.createObjectMessage((Serializable) value(Texts.readEntries(ByteBuffer.wrap(body)).get(0)));
      case OBJECT:
        return Opaque.message(session, body);
      default:
        return session.createMessage();
    }
  }
}
