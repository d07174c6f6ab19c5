package jmsbridge.streams;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import jmsbridge.kafka.OutputTopics;
import jmsbridge.kafka.RefusedRecordException;
import jmsbridge.kafka.RefusedRecords;
import jmsbridge.kafka.UnusableTopicException;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.AbstractRecords;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Publisher of a share's outputs. If it is exact, outputs and positions are written in one transaction, and outputs of
 * records whose positions are committed already, which are processed once more for the state, are held back.
 *
 * <p>A record that Kafka would refuse is not sent, since that would abort the transaction. If Kafka refuses one all the
 * same, the run fails with {@link RefusedRecordException}, and the next one, which is told of it, sends it no more.
 *
 * <p>While records wait to be processed, outputs are handed to the producer some at a time: one that does not linger, as
 * in real time, makes a request of the first that it gets, and further ones of few records.
 */
final class Publisher implements Output, AutoCloseable {
  private static final Duration CLOSE = Duration.ofSeconds(2);
  private static final long LOOK_NANOS = 20_000_000;
  private static final long SETTLE_NANOS = 1_000_000_000;
  /** Time after which outputs are handed to the producer, if they do not fill a batch before. */
  private static final long GATHER_NANOS = 20_000_000;

  private final RunSettings settings;
  private final KafkaProducer<byte[], byte[]> producer;
  private final Map<TopicPartition, Long> committed = new HashMap<>();
  /** Positions that an earlier run has committed and this one has not reached yet. */
  private final Map<TopicPartition, Long> ahead = new HashMap<>();
  private final AtomicReference<Exception> failure = new AtomicReference<>();
  private final OutputTopics topics;
  private final ClockReadings readings;
  private final RefusedRecords refused;
  private final Map<String, Way> ways = new HashMap<>();
  private final AtomicInteger underWay = new AtomicInteger();
  private final List<Outgoing> gathered = new ArrayList<>();
  private long gatheredSince;
  private long gatheredBytes;
  private volatile Thread waiting;
  private final int batchBytes;
  private final int requestBytes;
  private final CompressionType compression;
  private boolean isOpen;
  private boolean isHeldBack;
  /** What the clock made due in an earlier run, whose outputs are committed. */
  private Ticks ticksAhead = new Ticks();
  private final Ticks ticks = new Ticks();

  /** What is on its way to one topic. */
  private static final class Way {
    final OutputTopics.Known topic;
    final AtomicInteger underWay = new AtomicInteger();
    /** Bytes sent since there was nothing on its way. */
    int bytes;

    Way(OutputTopics.Known topic) {
      this.topic = topic;
    }
  }

  /** A record with its size and its way. */
  private record Outgoing(ProducerRecord<byte[], byte[]> record, int size, Way way) {}

  /** Begins to publish under a name, which one publisher of the topology has at a time. */
  Publisher(RunSettings settings, String name, Set<TopicPartition> partitions, ClockReadings readings) {
    this.settings = settings;
    this.readings = readings;
    topics = OutputTopics.of(settings.producer());
    refused = new RefusedRecords(settings.refused());
    ProducerConfig read = new ProducerConfig(serialized(settings.producer()));
    batchBytes = read.getInt(ProducerConfig.BATCH_SIZE_CONFIG);
    long buffer = read.getLong(ProducerConfig.BUFFER_MEMORY_CONFIG);
    requestBytes = (int) Math.min(buffer, read.getInt(ProducerConfig.MAX_REQUEST_SIZE_CONFIG));
    compression = CompressionType.forName(read.getString(ProducerConfig.COMPRESSION_TYPE_CONFIG));
    Map<String, Object> own = new HashMap<>(settings.producer());
    if (settings.isExact()) {
      own.put("transactional.id", settings.group() + "-" + name);
    }
    producer = new KafkaProducer<>(own, new ByteArraySerializer(), new ByteArraySerializer());
    if (settings.isExact()) {
      // Ends a transaction that an earlier run left open, and shuts its producer out.
      producer.initTransactions();
      try (KafkaConsumer<byte[], byte[]> consumer =
          new KafkaConsumer<>(settings.groupConsumer(), new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
        consumer.committed(partitions).forEach((at, each) -> {
          if (each != null) {
            committed.put(at, each.offset());
            ahead.put(at, each.offset());
            String[] beside = each.metadata().split("\\|", 2);
            readings.repeat(at, each.offset(), beside[0]);
            Ticks found = Ticks.read(beside.length < 2 ? "" : beside[1]);
            ticksAhead = found.latest() > ticksAhead.latest() ? found : ticksAhead;
          }
        });
      }
    }
  }

  private static Map<String, Object> serialized(Map<String, Object> settings) {
    Map<String, Object> all = new HashMap<>(settings);
    all.put(ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG, ByteArraySerializer.class);
    all.put(ProducerConfig.VALUE_SERIALIZER_CLASS_CONFIG, ByteArraySerializer.class);
    return all;
  }

  /** What the clock made due in real time in an earlier run, later than at a time; its outputs are committed. */
  Deque<Ticks.Tick> ticksAfter(long clock) {
    return ticksAhead.after(clock);
  }

  /** What the clock has made due since the last commit of the state. */
  Ticks ticks() {
    return ticks;
  }

  @Override
  public void begin(ConsumerRecord<byte[], byte[]> record) {
    isHeldBack = record == null && ticks.latest() <= ticksAhead.latest();
    if (record != null && !ahead.isEmpty()) {
      TopicPartition of = new TopicPartition(record.topic(), record.partition());
      isHeldBack = record.offset() < ahead.getOrDefault(of, 0L);
      if (!isHeldBack) {
        ahead.remove(of);
      }
    }
  }

  @Override
  public boolean isHeldBack() {
    return isHeldBack;
  }

  @Override
  public void send(String topic, byte[] key, byte[] value, long time, Header[] headers) {
    check();
    if (isHeldBack) {
      return;
    }
    // Retention counts from the time at which a dead letter is published, however old its record is.
    boolean isOfNow = time == StreamRecord.NO_TIME || topic.equals(settings.program().deadLetters());
    ProducerRecord<byte[], byte[]> record =
        new ProducerRecord<>(topic, null, isOfNow ? null : time, key, value, new RecordHeaders(headers));
    int size = AbstractRecords.estimateSizeInBytesUpperBound(
        RecordBatch.CURRENT_MAGIC_VALUE, compression, key, value, headers);
    OutputTopics.Known known = topics.topic(topic);
    String why = whyNot(known, record, size);
    if (why != null) {
      throw new UnpublishableException(why, record);
    }
    Way way = way(topic, known);
    if (way.topic.limit() < batchBytes) {
      // The producer would split a batch that is larger than the topic's limit into batches of the same size.
      if (way.bytes + size > way.topic.limit()) {
        awaitSent();
      }
      way.bytes += size;
    }
    gather(new Outgoing(record, size, way));
  }

  private void gather(Outgoing output) {
    long now = System.nanoTime();
    if (gathered.isEmpty()) {
      gatheredSince = now;
    }
    gathered.add(output);
    gatheredBytes += output.size;
    if (gatheredBytes >= batchBytes || now - gatheredSince >= GATHER_NANOS) {
      handOver();
    }
  }

  /** Hands the outputs so far to the producer; does not wait until Kafka has them. */
  void handOver() {
    gathered.forEach(this::send);
    gathered.clear();
    gatheredBytes = 0;
  }

  private Way way(String topic, OutputTopics.Known known) {
    Way way = ways.get(topic);
    if (way == null || way.topic != known) {
      way = new Way(known);
      ways.put(topic, way);
    }
    return way;
  }

  /** Why Kafka would not take a record, as far as it is known; null: it would. */
  private String whyNot(OutputTopics.Known topic, ProducerRecord<byte[], byte[]> record, int size) {
    String trouble = topic.trouble() == null ? refused.whyNothing(record.topic()) : topic.trouble();
    if (trouble != null) {
      if (settings.program().needs(record.topic())) {
        throw new UnusableTopicException(trouble);
      }
      return trouble;
    }
    // Only the broker knows how small a record is that is compressed.
    int limit = compression == CompressionType.NONE ? Math.min(requestBytes, topic.limit()) : requestBytes;
    if (size > limit) {
      return "topic '%s' takes %d bytes and the record has %d".formatted(record.topic(), limit, size);
    }
    return refused.why(record, size);
  }

  private void send(Outgoing output) {
    if (settings.isExact() && !isOpen) {
      producer.beginTransaction();
      isOpen = true;
    }
    output.way.underWay.incrementAndGet();
    underWay.incrementAndGet();
    try {
      producer.send(output.record, (metadata, thrown) -> ended(output, thrown));
    } catch (KafkaException thrown) {
      // After a failure a transaction takes no further record; the first one says why.
      check();
      throw thrown;
    }
  }

  /** Takes note of the end of a send, in the producer's thread. */
  private void ended(Outgoing output, Exception thrown) {
    if (thrown != null && RefusedRecordException.is(thrown)) {
      Exception refusal = new RefusedRecordException(output.record, output.size, thrown);
      failure.updateAndGet(before -> before instanceof RefusedRecordException ? before : refusal);
    } else if (thrown != null) {
      failure.compareAndSet(null, thrown);
    }
    output.way.underWay.decrementAndGet();
    if (underWay.decrementAndGet() == 0) {
      LockSupport.unpark(waiting);
    }
  }

  /**
   * Waits until Kafka has all outputs. A topic that is deleted meanwhile ends the wait: the producer would keep its
   * records for minutes.
   */
  void awaitSent() {
    handOver();
    waiting = Thread.currentThread();
    while (underWay.get() > 0) {
      check();
      topics.use();
      ways.forEach((topic, way) -> {
        String trouble = way.underWay.get() > 0 ? way.topic.trouble() : null;
        if (trouble != null) {
          throw settings.program().needs(topic)
              ? new UnusableTopicException(trouble) : new RefusedRecordException(topic, trouble);
        }
      });
      if (Thread.interrupted()) {
        throw new InterruptException(new InterruptedException());
      }
      LockSupport.parkNanos(LOOK_NANOS);
    }
    check();
    ways.values().forEach(way -> way.bytes = 0);
  }

  /** Waits until Kafka has all outputs; if exact, commits them with the positions behind their records. */
  void commit(Map<TopicPartition, Long> next) {
    awaitSent();
    if (!settings.isExact()) {
      return;
    }
    Map<TopicPartition, OffsetAndMetadata> further = new HashMap<>();
    next.forEach((at, offset) -> {
      if (offset > committed.getOrDefault(at, 0L)) {
        further.put(at, position(at, offset));
      }
    });
    if (further.isEmpty() && !isOpen) {
      return;
    }
    if (further.isEmpty()) {
      // What the clock made due is committed with the clock beside a position that stays.
      committed.forEach((at, offset) -> further.put(at, position(at, offset)));
    }
    if (!isOpen) {
      producer.beginTransaction();
    }
    producer.sendOffsetsToTransaction(further, new ConsumerGroupMetadata(settings.group()));
    producer.commitTransaction();
    isOpen = false;
    further.forEach((at, each) -> committed.put(at, each.offset()));
  }

  /** A position, beside which is what the clock has said since the last commit of the state. */
  private OffsetAndMetadata position(TopicPartition at, long offset) {
    String beside = readings.committed(at) + "|" + ticks.text();
    return new OffsetAndMetadata(offset, beside.length() == 1 ? "" : beside);
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
    if (failure.get() != null) {
      // Kafka refuses a batch for one of its records; the producer reports them one after the other.
      long until = System.nanoTime() + SETTLE_NANOS;
      while (!(failure.get() instanceof RefusedRecordException) && underWay.get() > 0 && System.nanoTime() < until) {
        LockSupport.parkNanos(LOOK_NANOS);
      }
    }
    Exception thrown = failure.get();
    if (thrown instanceof RuntimeException known) {
      throw known;
    }
    if (thrown != null) {
      throw new IllegalStateException(thrown);
    }
  }
}
