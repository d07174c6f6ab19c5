package jmsbridge.kafka;

import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import jmsbridge.figures.Sends;
import org.apache.kafka.clients.ClientRequest;
import org.apache.kafka.clients.KafkaClient;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.protocol.ApiKeys;

/**
 * Makes a producer's network thread send no records after the time limit of {@link Sends}.
 *
 * <p>{@link Sends} checks the limit before a record goes into the producer's buffer. A process that was frozen with a full
 * buffer would send it when it continues. Kafka has no place for a check in that thread, so this class puts itself before
 * the producer's client, which is a private field.
 */
public final class Fence {
  private static final String SEND = "send";

  private Fence() {}

  /** Thrown in the network thread, which logs it and keeps the records. */
  private static final class TooLateException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    TooLateException() {
      super("this process may not publish any more: records in its buffer are not sent");
    }
  }

  /**
   * Fences a new producer.
   *
   * @throws IllegalStateException this version of Kafka's client is made in another way
   */
  public static <K, V> KafkaProducer<K, V> around(KafkaProducer<K, V> producer) {
    try {
      Object sender = field(KafkaProducer.class, "sender").get(producer);
      Field client = field(sender.getClass(), "client");
      client.set(sender, fenced((KafkaClient) client.get(sender)));
      return producer;
    } catch (ReflectiveOperationException failure) {
      producer.close();
      throw new IllegalStateException("a producer of this version of Kafka cannot be fenced", failure);
    }
  }

  private static KafkaClient fenced(KafkaClient client) {
    Class<?>[] kinds = {KafkaClient.class};
    return (KafkaClient) Proxy.newProxyInstance(Fence.class.getClassLoader(), kinds, (proxy, method, arguments) -> {
      if (method.getName().equals(SEND) && isTooLate((ClientRequest) arguments[0])) {
        throw new TooLateException();
      }
      try {
        return method.invoke(client, arguments);
      } catch (InvocationTargetException thrown) {
        throw thrown.getCause();
      }
    });
  }

  private static boolean isTooLate(ClientRequest request) {
    return request.apiKey() == ApiKeys.PRODUCE && Sends.remainingNanos() < 0;
  }

  private static Field field(Class<?> of, String name) throws NoSuchFieldException {
    Field field = of.getDeclaredField(name);
    field.setAccessible(true);
    return field;
  }
}
