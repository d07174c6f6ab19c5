package jmsbridge.streams;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Reader of the global tables of a run: first all that is in their topics, then, in a thread, what comes. */
final class GlobalReader implements AutoCloseable {
  private static final Duration POLL = Duration.ofMillis(200);

  private final Map<String, Map<ByteBuffer, byte[]>> rows = new HashMap<>();
  private final Map<String, Long> rejected = new ConcurrentHashMap<>();
  private final Map<String, GlobalTable> tables = new HashMap<>();
  private final Gaps gaps = new Gaps();
  private final KafkaConsumer<byte[], byte[]> consumer;
  private final Thread thread = new Thread(this::follow, "global tables");
  private volatile RuntimeException failure;

  /** Reads the tables of a program up to the present ends of their topics. */
  GlobalReader(Program program, Map<String, Object> settings) {
    consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    List<TopicPartition> partitions = new ArrayList<>();
    for (GlobalTable each : program.copy().globalTables()) {
      Map<ByteBuffer, byte[]> own = GlobalTable.noRows();
      each.share(own);
      rows.put(each.name, own);
      tables.put(each.topic, each);
      for (PartitionInfo info : consumer.partitionsFor(each.topic)) {
        partitions.add(new TopicPartition(each.topic, info.partition()));
      }
    }
    consumer.assign(partitions);
    consumer.seekToBeginning(partitions);
    Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
    while (ends.entrySet().stream().anyMatch(each -> consumer.position(each.getKey()) < each.getValue())) {
      take();
    }
    thread.setDaemon(true);
    thread.start();
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
    for (ConsumerRecord<byte[], byte[]> each : records) {
      GlobalTable table = tables.get(each.topic());
      if (!table.take(each)) {
        rejected.merge(table.name, 1L, Long::sum);
      }
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
