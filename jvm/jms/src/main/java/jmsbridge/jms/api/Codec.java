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
import java.util.HexFormat;
import java.util.List;
import jmsbridge.jms.Batch;
import jmsbridge.jms.Buffer;
import jmsbridge.jms.Main;
import jmsbridge.jms.Texts;
import jmsbridge.jms.Texts.Entry;

/**
 * Messages as bytes of a frame, in both directions.
 *
 * <p>The letter of a value is its type; `H` marks a field of JMS, and `F` the reason why a message could not be read.
 */
final class Codec {
  /** Letters of bodies. */
  static final char TEXT = 't', BYTES = 'b', MAP = 'm', STREAM = 's', OBJECT = 'o', VALUE = 'v', PLAIN = 'n', NULL = 'z';

  private static final char FIELD = 'H', FAULT = 'F';
  /** Beginning of the text of a correlation id in bytes, as Qpid JMS and the bridge's AMQP source give it. */
  private static final String BINARY = "ID:AMQP_BINARY:";

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

  /** Adds a message; one that cannot be read is added with its fault. */
  void write(Batch out, Message message) {
    Batch.Values values = new Batch.Values();
    try {
      fields(message, values);
      properties(message, values);
      body(out, message, values);
    } catch (JMSException | RuntimeException | LinkageError | StackOverflowError error) {
      writeFault(out, values, error, new byte[0]);
    }
  }

  /** Adds a message that the client cannot read, as it came, with the fault. */
  void writeForeign(Batch out, Message message, byte[] body, Throwable fault) {
    Batch.Values values = new Batch.Values();
    try {
      fields(message, values);
      properties(message, values);
    } catch (JMSException | RuntimeException error) {
      // Its body and what could be read are enough to tell it.
    }
    writeFault(out, values, fault, body.length > mostBytes ? Arrays.copyOf(body, keptBytes) : body);
  }

  private void writeFault(Batch out, Batch.Values values, Throwable fault, byte[] body) {
    if (!values.has(FIELD, "JMSDestination")) {
      values.add(FIELD, "JMSDestination", address);
    }
    values.add(FAULT, "", Main.text(fault));
    out.add(0, BYTES, values, body);
  }

  private void fields(Message message, Batch.Values values) throws JMSException {
    field(values, "JMSMessageID", message.getJMSMessageID());
    String to = address(message.getJMSDestination(), kind);
    field(values, "JMSDestination", to == null ? address : to);
    field(values, "JMSReplyTo", address(message.getJMSReplyTo(), "queue"));
    field(values, "JMSCorrelationID", correlationId(message));
    field(values, "JMSType", message.getJMSType());
    boolean isPersistent = message.getJMSDeliveryMode() == DeliveryMode.PERSISTENT;
    field(values, "JMSDeliveryMode", isPersistent ? "PERSISTENT" : "NON_PERSISTENT");
    field(values, "JMSPriority", String.valueOf(message.getJMSPriority()));
    time(values, "JMSTimestamp", message.getJMSTimestamp());
    time(values, "JMSExpiration", message.getJMSExpiration());
    field(values, "JMSRedelivered", String.valueOf(message.getJMSRedelivered()));
    if (hasDeliveryTime) {
      try {
        time(values, "JMSDeliveryTime", message.getJMSDeliveryTime());
      } catch (AbstractMethodError | NoSuchMethodError | UnsupportedOperationException ofJms11) {
        hasDeliveryTime = false;
      }
    }
  }

  /** The correlation id; `ID:AMQP_BINARY:` and hexadecimal digits for one that is bytes alone. */
  private static String correlationId(Message message) throws JMSException {
    String text = message.getJMSCorrelationID();
    if (text != null) {
      return text;
    }
    try {
      byte[] bytes = message.getJMSCorrelationIDAsBytes();
      return bytes == null ? null : BINARY + HexFormat.of().withUpperCase().formatHex(bytes);
    } catch (JMSException | RuntimeException | LinkageError noBytes) {
      // A provider need not have ids in bytes (Jakarta Messaging 3.1, 3.4.5), nor give bytes for every message.
      return null;
    }
  }

  /** Sets a correlation id: in bytes where the text says so, and a source would read the same text. */
  static void setCorrelationId(Message message, String text) throws JMSException {
    if (text.startsWith(BINARY)) {
      try {
        byte[] bytes = HexFormat.of().parseHex(text.substring(BINARY.length()));
        message.setJMSCorrelationIDAsBytes(bytes);
        if (text.equalsIgnoreCase(correlationId(message))) {
          return;
        }
      } catch (JMSException | RuntimeException | LinkageError noBytes) {
        // Not hexadecimal digits, or a provider without ids in bytes: the text is the id.
      }
    }
    message.setJMSCorrelationID(text);
  }

  private static void field(Batch.Values values, String name, String value) {
    if (value != null) {
      values.add(FIELD, name, value);
    }
  }

  private static void time(Batch.Values values, String name, long value) {
    if (value > 0) {
      field(values, name, String.valueOf(value));
    }
  }

  private static void properties(Message message, Batch.Values values) throws JMSException {
    for (Object each : Collections.list(message.getPropertyNames())) {
      String name = (String) each;
      Object value = message.getObjectProperty(name);
      switch (name) {
        case "JMSXGroupID", "JMSXGroupSeq", "JMSXDeliveryCount", "JMSXUserID" ->
            field(values, name, value == null ? null : value.toString());
        default -> {
          if (value != null) {
            values.add(type(value), name, value instanceof byte[] bytes ? base64(bytes) : value.toString());
          }
        }
      }
    }
  }

  private static String base64(byte[] bytes) {
    return java.util.Base64.getEncoder().encodeToString(bytes);
  }

  private void body(Batch out, Message message, Batch.Values values) throws JMSException {
    if (message instanceof TextMessage text) {
      String found = text.getText();
      opaque(out, found == null ? NULL : TEXT, found == null ? new byte[0] : Texts.bytes(found), values);
    } else if (message instanceof BytesMessage bytes) {
      long length = bytes.getBodyLength();
      byte[] found = new byte[(int) (length > mostBytes ? keptBytes : length)];
      bytes.readBytes(found);
      out.add(length, BYTES, values, found);
    } else if (message instanceof MapMessage map) {
      List<Entry> entries = new ArrayList<>();
      for (Object name : Collections.list(map.getMapNames())) {
        entries.add(entry((String) name, map.getObject((String) name)));
      }
      structured(out, MAP, entries, values);
    } else if (message instanceof StreamMessage stream) {
      List<Entry> entries = new ArrayList<>();
      try {
        while (true) {
          entries.add(entry("", stream.readObject()));
        }
      } catch (MessageEOFException end) {
        structured(out, STREAM, entries, values);
      }
    } else if (message instanceof ObjectMessage object) {
      opaque(out, OBJECT, Opaque.bytes(object), values);
    } else {
      opaque(out, PLAIN, new byte[0], values);
    }
  }

  private void opaque(Batch out, char letter, byte[] body, Batch.Values values) {
    out.add(body.length, letter, values, body.length > mostBytes ? Arrays.copyOf(body, keptBytes) : body);
  }

  private static void structured(Batch out, char letter, List<Entry> entries, Batch.Values values) {
    Buffer body = new Buffer();
    Texts.writeEntries(body, entries);
    out.add(0, letter, values, body.toBytes());
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
      case NULL:
        return session.createTextMessage();
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
