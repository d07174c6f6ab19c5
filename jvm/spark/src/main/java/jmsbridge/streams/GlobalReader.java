package jmsbridge.streams;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Reader of the global tables of a run: first all that is in their topics, then, in a thread, what comes. Each start reads
 * all records again; a dead letter is published of those alone that are behind the position committed with the last ones.
 */
final class GlobalReader implements AutoCloseable {
  private static final Duration POLL = Duration.ofMillis(200);

  private final Map<String, Map<ByteBuffer, byte[]>> rows = new HashMap<>();
  private final Map<String, Long> rejected = new ConcurrentHashMap<>();
  private final RunSettings settings;
  /** Positions before which each record that cannot be read has its dead letter. */
  private final Map<TopicPartition, Long> told;
  private final Map<String, GlobalTable> tables = new HashMap<>();
  private final Gaps gaps = new Gaps();
  private final KafkaConsumer<byte[], byte[]> consumer;
  private final Thread thread = new Thread(this::follow, "global tables");
  private volatile RuntimeException failure;

  /**
   * Reads the tables of a run up to the present ends of their topics.
   *
   * @throws IllegalStateException for a record that cannot be read, if the policy for failures is to stop
   */
  GlobalReader(RunSettings settings) {
    this.settings = settings;
    consumer = new KafkaConsumer<>(settings.consumer(), new ByteArrayDeserializer(), new ByteArrayDeserializer());
    List<TopicPartition> partitions = new ArrayList<>();
    for (GlobalTable each : settings.program().copy().globalTables()) {
      Map<ByteBuffer, byte[]> own = GlobalTable.noRows();
      each.share(own);
      rows.put(each.name, own);
      tables.put(each.topic, each);
      for (PartitionInfo info : consumer.partitionsFor(each.topic)) {
        partitions.add(new TopicPartition(each.topic, info.partition()));
      }
    }
    told = told(partitions);
    consumer.assign(partitions);
    consumer.seekToBeginning(partitions);
    Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
    while (ends.entrySet().stream().anyMatch(each -> consumer.position(each.getKey()) < each.getValue())) {
      take();
    }
    thread.setDaemon(true);
    thread.start();
  }

  private Map<TopicPartition, Long> told(List<TopicPartition> partitions) {
    Map<TopicPartition, Long> found = new HashMap<>();
    try (KafkaConsumer<byte[], byte[]> group =
        new KafkaConsumer<>(settings.groupConsumer(), new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
      group.committed(Set.copyOf(partitions)).forEach((at, each) -> found.put(at, each == null ? 0L : each.offset()));
    }
    return found;
  }

  /** Gives a task's copy of a program the rows. */
  void share(Program program) {
    program.globalTables().forEach(each -> each.share(rows.get(each.name)));
  }

  /** Values that could not be read, by node. */
  Map<String, Long> rejected() {
    return rejected;
  }

  /** Records that Kafka removed before they were read, as {@link Gaps#found}. */
  Map<String, Long> gaps() {
    return gaps.found();
  }

  /** Throws what the thread ended with, if it has ended. */
  void check() {
    if (failure != null) {
      throw failure;
    }
  }

  @Override
  public void close() {
    consumer.wakeup();
  }

  private void take() {
    ConsumerRecords<byte[], byte[]> records = poll();
    for (TopicPartition each : records.partitions()) {
      tables.get(each.topic()).expect(records.records(each));
    }
    List<GlobalTable.Unread> unread = new ArrayList<>(0);
    for (ConsumerRecord<byte[], byte[]> each : records) {
      GlobalTable.Unread found = tables.get(each.topic()).take(each);
      if (found != null) {
        rejected.merge(found.node(), 1L, Long::sum);
        unread.add(found);
      }
    }
    reject(unread);
  }

  /** Treats records by the policy for failures. Each process of the run has the tables, and one of them publishes first. */
  private void reject(List<GlobalTable.Unread> unread) {
    if (settings.program().policy() != FailurePolicy.DEAD_LETTER) {
      TaskContext context = new TaskContext(settings.program(), null, (topic, key, value, time, headers) -> {}, null, null);
      unread.forEach(each -> each.reject(context));
      return;
    }
    unread.removeIf(each -> each.record().offset() < told.get(each.partition()));
    boolean isDone = unread.isEmpty();
    while (!isDone) {
      isDone = isPublished(unread);
    }
  }

  /**
   * Publishes dead letters of records in one transaction with the positions behind them, by which later runs know that
   * they are there; false if another process has shut this one out.
   */
  private boolean isPublished(List<GlobalTable.Unread> unread) {
    Map<TopicPartition, Long> next = new HashMap<>();
    unread.forEach(each -> next.put(each.partition(), each.record().offset() + 1));
    ClockReadings none = new ClockReadings(System::currentTimeMillis);
    try (Publisher publisher = new Publisher(settings.exact(), "globals", next.keySet(), none)) {
      TaskContext context = new TaskContext(settings.program(), null, publisher, null, null);
      unread.forEach(each -> each.reject(context));
      publisher.commit(next);
      told.putAll(next);
      return true;
    } catch (ProducerFencedException | InvalidProducerEpochException other) {
      return false;
    }
  }

  private ConsumerRecords<byte[], byte[]> poll() {
    try {
      return consumer.poll(POLL);
    } catch (OffsetOutOfRangeException gone) {
      gaps.skip(consumer, gone);
      return ConsumerRecords.empty();
    }
  }

  private void follow() {
    try (consumer) {
      while (true) {
        take();
      }
    } catch (WakeupException | InterruptException end) {
      Thread.currentThread().interrupt();
    } catch (RuntimeException thrown) {
      failure = thrown;
    } catch (Error fatal) {
      failure = new IllegalStateException("the global tables cannot be read any further: " + fatal, fatal);
      throw fatal;
    }
  }
}
