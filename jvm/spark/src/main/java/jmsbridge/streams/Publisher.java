package jmsbridge.streams;

import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Publisher of a share's outputs. If it is exact, outputs and positions are written in one transaction, and outputs of
 * records whose positions are committed already, which are processed once more for the state, are held back.
 */
final class Publisher implements Output, AutoCloseable {
  private static final Duration CLOSE = Duration.ofSeconds(2);

  private final RunSettings settings;
  private final KafkaProducer<byte[], byte[]> producer;
  private final Map<TopicPartition, Long> committed = new HashMap<>();
  /** Positions that an earlier run has committed and this one has not reached yet. */
  private final Map<TopicPartition, Long> ahead = new HashMap<>();
  private final AtomicReference<Exception> failure = new AtomicReference<>();
  private boolean isOpen;
  private boolean isHeldBack;

  Publisher(RunSettings settings, int share, Set<TopicPartition> partitions) {
    this.settings = settings;
    Map<String, Object> own = new HashMap<>(settings.producer());
    if (settings.isExact()) {
      own.put("transactional.id", settings.group() + "-" + share);
    }
    producer = new KafkaProducer<>(own, new ByteArraySerializer(), new ByteArraySerializer());
    if (settings.isExact()) {
      // Ends a transaction that an earlier run left open, and shuts its producer out.
      producer.initTransactions();
      try (KafkaConsumer<byte[], byte[]> consumer =
          new KafkaConsumer<>(group(settings), new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
        consumer.committed(partitions).forEach((at, each) -> {
          if (each != null) {
            committed.put(at, each.offset());
            ahead.put(at, each.offset());
          }
        });
      }
    }
  }

  private static Map<String, Object> group(RunSettings settings) {
    Map<String, Object> own = new HashMap<>(settings.consumer());
    own.put("group.id", settings.group());
    return own;
  }

  @Override
  public void begin(ConsumerRecord<byte[], byte[]> record) {
    isHeldBack = false;
    if (!ahead.isEmpty()) {
      TopicPartition of = new TopicPartition(record.topic(), record.partition());
      isHeldBack = record.offset() < ahead.getOrDefault(of, 0L);
      if (!isHeldBack) {
        ahead.remove(of);
      }
    }
  }

  @Override
  public void send(String topic, byte[] key, byte[] value, long time, Header[] headers) {
    check();
    if (isHeldBack) {
      return;
    }
    if (settings.isExact() && !isOpen) {
      producer.beginTransaction();
      isOpen = true;
    }
    // Kafka's client gives a record without a time that of its publication.
    Long timestamp = time == StreamRecord.NO_TIME ? null : time;
    producer.send(new ProducerRecord<>(topic, null, timestamp, key, value, new RecordHeaders(headers)),
        (metadata, thrown) -> {
          if (thrown != null) {
            failure.compareAndSet(null, thrown);
          }
        });
  }

  /** Waits until Kafka has all outputs; if exact, commits them with the positions behind their records. */
  void commit(Map<TopicPartition, Long> next) {
    check();
    if (!settings.isExact()) {
      producer.flush();
      check();
      return;
    }
    Map<TopicPartition, OffsetAndMetadata> further = new HashMap<>();
    next.forEach((at, offset) -> {
      if (offset > committed.getOrDefault(at, 0L)) {
        further.put(at, new OffsetAndMetadata(offset));
      }
    });
    if (further.isEmpty() && !isOpen) {
      return;
    }
    if (!isOpen) {
      producer.beginTransaction();
    }
    producer.sendOffsetsToTransaction(further, new ConsumerGroupMetadata(settings.group()));
    producer.commitTransaction();
    isOpen = false;
    further.forEach((at, each) -> committed.put(at, each.offset()));
  }

  @Override
  public void close() {
    boolean interrupted = Thread.interrupted();
    producer.close(CLOSE);
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  private void check() {
    Exception thrown = failure.get();
    if (thrown instanceof RuntimeException known) {
      throw known;
    }
    if (thrown != null) {
      throw new IllegalStateException(thrown);
    }
  }
}
