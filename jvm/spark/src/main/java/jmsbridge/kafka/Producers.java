package jmsbridge.kafka;

import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Consumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Producers of this JVM, one for all tasks that write with the same settings, until {@link #close}. */
public final class Producers {
  private static final Map<Map<String, String>, KafkaProducer<byte[], byte[]>> OPEN = new HashMap<>();

  private Producers() {}

  static synchronized KafkaProducer<byte[], byte[]> get(Map<String, String> settings) {
    return OPEN.computeIfAbsent(settings, Producers::create);
  }

  /**
   * Closes all producers, in the background, since records may be under way: each producer delivers what it has or gives
   * it up in its time. To be called when no query runs.
   */
  public static synchronized void close() {
    close(KafkaProducer::close);
  }

  /**
   * Closes all producers, in the background, since a topic is gone whose records they would keep for minutes: what is not
   * delivered in this time is given up. To be called when no query runs.
   */
  public static synchronized void close(long milliseconds) {
    close(producer -> producer.close(Duration.ofMillis(milliseconds)));
  }

  private static void close(Consumer<KafkaProducer<byte[], byte[]>> way) {
    OPEN.values().forEach(producer -> {
      Thread thread = new Thread(() -> way.accept(producer), "closing a producer");
      thread.setDaemon(true);
      thread.start();
    });
    OPEN.clear();
  }

  private static KafkaProducer<byte[], byte[]> create(Map<String, String> settings) {
    ByteArraySerializer asTheyAre = new ByteArraySerializer();
    return Fence.around(new KafkaProducer<>(new HashMap<String, Object>(settings), asTheyAre, asTheyAre));
  }
}
