package jmsbridge.jms.api;

import jakarta.jms.BytesMessage;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.nio.charset.StandardCharsets;

/**
 * A second way to the messages of a queue: as their senders wrote them.
 *
 * <p>RabbitMQ's client throws at messages that are not in its own format. Of its destinations, those with the name of a queue
 * of AMQP 0.9.1 give every message as bytes or text. No other provider needs this.
 */
final class Foreign implements AutoCloseable {
  private static final String RABBITMQ = "com.rabbitmq.jms.admin.RMQDestination";

  private final MessageConsumer consumer;

  private Foreign(MessageConsumer consumer) {
    this.consumer = consumer;
  }

  /** The way at a destination; null where the provider has none. */
  static Foreign of(Session session, Destination destination) throws JMSException {
    Class<?> type = destination.getClass();
    if (!type.getName().equals(RABBITMQ) || !(destination instanceof Queue queue)) {
      return null;
    }
    try {
      String name = queue.getQueueName();
      Object same =
          type.getConstructor(String.class, String.class, String.class, String.class).newInstance(name, null, null, name);
      return new Foreign(session.createConsumer((Destination) same));
    } catch (ReflectiveOperationException other) {
      return null;
    }
  }

  /** The next message; null if none comes in time. */
  Message receive(long milliseconds) throws JMSException {
    return consumer.receive(milliseconds);
  }

  /** The body; null for a message in the client's own format, which comes in place of the one that is meant. */
  byte[] body(Message message) throws JMSException {
    byte[] found;
    if (message instanceof BytesMessage bytes) {
      found = new byte[(int) bytes.getBodyLength()];
      bytes.readBytes(found);
    } else if (message instanceof TextMessage text) {
      found = text.getText() == null ? new byte[0] : text.getText().getBytes(StandardCharsets.UTF_8);
    } else {
      return null;
    }
    // The client writes by an ObjectOutputStream.
    return found.length > 1 && found[0] == (byte) 0xac && found[1] == (byte) 0xed ? null : found;
  }

  @Override
  public void close() throws JMSException {
    consumer.close();
  }
}
