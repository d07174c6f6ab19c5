package jmsbridge.kafka;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteBufferDeserializer;
import org.apache.spark.SparkEnv;

/**
 * Pool of idle consumers of streams, one for each partition: between two batches a consumer keeps its connection and
 * the records that it has fetched in advance.
 */
final class Consumers {
  private static final Map<UUID, Map<TopicPartition, KafkaConsumer<ByteBuffer, ByteBuffer>>> IDLE = new HashMap<>();
  /** Time limit for closing a consumer, since the broker may be gone. */
  private static final Duration FAREWELL = Duration.ofSeconds(1);

  /** Spark's id of the process that plans queries, which in a local session also runs them. */
  private static final String DRIVER = "driver";

  private Consumers() {}

  static synchronized void open(UUID stream) {
    IDLE.put(stream, new HashMap<>());
  }

  /** Closes the idle consumers of the stream, and from now on those that are given back. */
  static void close(UUID stream) {
    Map<TopicPartition, KafkaConsumer<ByteBuffer, ByteBuffer>> idle = removed(stream);
    if (idle != null) {
      idle.values().forEach(Consumers::close);
    }
  }

  private static synchronized Map<TopicPartition, KafkaConsumer<ByteBuffer, ByteBuffer>> removed(UUID stream) {
    return IDLE.remove(stream);
  }

  /** Opens the stream in an executor, which does not learn of the end of another one; returns the streams before it. */
  private static synchronized List<UUID> openAlone(UUID stream) {
    if (IDLE.containsKey(stream)) {
      return List.of();
    }
    List<UUID> before = List.copyOf(IDLE.keySet());
    open(stream);
    return before;
  }

  /** Takes or makes a consumer of the partition alone, positioned at the offset. */
  static KafkaConsumer<ByteBuffer, ByteBuffer> take(
      UUID stream, TopicPartition partition, Map<String, Object> settings, long offset) {
    if (stream != null && !SparkEnv.get().executorId().equals(DRIVER)) {
      openAlone(stream).forEach(Consumers::close);
    }
    KafkaConsumer<ByteBuffer, ByteBuffer> idle = idle(stream, partition);
    KafkaConsumer<ByteBuffer, ByteBuffer> consumer = idle == null ? create(partition, settings) : idle;
    // Only if necessary: a seek discards the records that were fetched in advance.
    if (idle == null || idle.position(partition) != offset) {
      consumer.seek(partition, offset);
    }
    return consumer;
  }

  /** Takes a consumer back, and closes it if there is no use for it. */
  static void give(UUID stream, TopicPartition partition, KafkaConsumer<ByteBuffer, ByteBuffer> consumer) {
    KafkaConsumer<ByteBuffer, ByteBuffer> surplus = put(stream, partition, consumer);
    if (surplus != null) {
      close(surplus);
    }
  }

  private static synchronized KafkaConsumer<ByteBuffer, ByteBuffer> put(
      UUID stream, TopicPartition partition, KafkaConsumer<ByteBuffer, ByteBuffer> consumer) {
    Map<TopicPartition, KafkaConsumer<ByteBuffer, ByteBuffer>> idle = IDLE.get(stream);
    return idle == null ? consumer : idle.put(partition, consumer);
  }

  /**
   * Closes a consumer, which waits for an answer of the broker: never under the lock of this class, for which thousands
   * of tasks of a recovery would wait. Clears an interrupt meanwhile, with which Spark stops a query: Kafka would
   * refuse to close.
   */
  static void close(KafkaConsumer<ByteBuffer, ByteBuffer> consumer) {
    boolean interrupted = Thread.interrupted();
    try {
      consumer.close(FAREWELL);
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private static KafkaConsumer<ByteBuffer, ByteBuffer> create(TopicPartition partition, Map<String, Object> settings) {
    ByteBufferDeserializer asTheyCame = new ByteBufferDeserializer();
    KafkaConsumer<ByteBuffer, ByteBuffer> consumer = new KafkaConsumer<>(settings, asTheyCame, asTheyCame);
    consumer.assign(List.of(partition));
    return consumer;
  }

  private static synchronized KafkaConsumer<ByteBuffer, ByteBuffer> idle(UUID stream, TopicPartition partition) {
    Map<TopicPartition, KafkaConsumer<ByteBuffer, ByteBuffer>> idle = IDLE.get(stream);
    return idle == null ? null : idle.remove(partition);
  }
}
