package jmsbridge.streams;

import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Lag of a run behind the present ends of its partitions, whatever its shares are waiting for. */
final class Lag implements AutoCloseable {
  private static final Duration LIMIT = Duration.ofMillis(500);
  private static final Duration CLOSE = Duration.ofSeconds(1);

  private final KafkaConsumer<byte[], byte[]> consumer;
  private final Map<TopicPartition, Long> ends = new HashMap<>();

  Lag(Map<String, Object> settings) {
    consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
  }

  /** Records from the next ones of the partitions up to their ends; up to the last known ends while Kafka is away. */
  synchronized long behind(Map<TopicPartition, Long> next) {
    try {
      ends.putAll(consumer.endOffsets(next.keySet(), LIMIT));
    } catch (KafkaException away) {
      // The tasks say what is wrong with Kafka.
    }
    return next.entrySet().stream()
        .mapToLong(each -> Math.max(0, ends.getOrDefault(each.getKey(), 0L) - each.getValue())).sum();
  }

  @Override
  public synchronized void close() {
    consumer.close(CLOSE);
  }
}
