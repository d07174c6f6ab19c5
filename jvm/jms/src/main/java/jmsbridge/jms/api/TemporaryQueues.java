package jmsbridge.jms.api;

import jakarta.jms.Destination;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSException;
import jakarta.jms.Session;
import java.lang.reflect.Constructor;

/**
 * Temporary queues of other clients, to which replies go, by their names.
 *
 * <p>By JMS an application gets them from JMSReplyTo alone. Most providers also take their names; for others there is a way by
 * reflection.
 */
final class TemporaryQueues {
  private static final String OPENMQ = "com.sun.messaging.jmq.jmsclient.";
  private static final String RABBITMQ = "com.rabbitmq.jms.";

  private TemporaryQueues() {}

  /** The queue; null for any other destination, or if the provider takes its name as that of any other queue. */
  static Destination found(Session session, String name) throws JMSException {
    String provider = session.getClass().getName();
    try {
      if (provider.startsWith(OPENMQ) && name.startsWith("temporary_destination://queue/")) {
        Constructor<?> made = type(session, OPENMQ + "TemporaryQueueImpl").getDeclaredConstructor(String.class);
        made.setAccessible(true);
        return (Destination) made.newInstance(name);
      }
      if (provider.startsWith(RABBITMQ) && name.startsWith("jms-temp-queue-")) {
        Class<?> type = type(session, RABBITMQ + "admin.RMQDestination");
        Object made = type.getConstructor(String.class, boolean.class, boolean.class).newInstance(name, true, true);
        // Else the client would declare it, which only its owner may.
        type.getMethod("setDeclared", boolean.class).invoke(made, true);
        return (Destination) made;
      }
    } catch (ReflectiveOperationException | RuntimeException error) {
      throw new InvalidDestinationException("the client gives no way to the temporary queue " + name + ": " + error);
    }
    return null;
  }

  private static Class<?> type(Session session, String name) throws ClassNotFoundException {
    return Class.forName(name, true, session.getClass().getClassLoader());
  }
}
