package jmsbridge.streams;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BiConsumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Consumer of the partitions of one share: gives the records of all of them in the order of their times, each partition
 * in its own order.
 *
 * <p>Up to fixed ends the order depends on the records alone, so that a second run repeats the first.
 */
final class ShareConsumer implements AutoCloseable {
  /** Records of a partition that are fetched in advance, at most, plus one poll. */
  private static final int MOST_WAITING = 5_000;
  private static final Duration CLOSE = Duration.ofSeconds(1);

  /** What is fetched of a partition. */
  private static final class Fetched {
    private final TopicPartition of;
    private final Deque<ConsumerRecord<byte[], byte[]>> waiting = new ArrayDeque<>();
    /** All records before this offset were given; read by other threads. */
    private volatile long next = -1;
    /** Where the batch ends; a batch without an end has the greatest number. */
    private long end = Long.MAX_VALUE;
    private boolean isPaused;

    private Fetched(TopicPartition of) {
      this.of = of;
    }

    /** The first record that waits, if it is before the end; null if there is none. */
    private ConsumerRecord<byte[], byte[]> head() {
      ConsumerRecord<byte[], byte[]> head = waiting.peek();
      return head == null || head.offset() >= end ? null : head;
    }
  }

  private final KafkaConsumer<byte[], byte[]> consumer;
  private final Map<TopicPartition, Fetched> byPartition = new HashMap<>();
  private final List<Fetched> partitions = new ArrayList<>();
  private final Gaps gaps = new Gaps();
  /** Offsets that the consumer's group has. */
  private final Map<TopicPartition, Long> noted = new HashMap<>();
  private final BiConsumer<String, List<ConsumerRecord<byte[], byte[]>>> fetched;

  /** Creates the consumer; {@code fetched} gets the records of a topic when they come, some time before they are given. */
  ShareConsumer(
      Map<String, Object> settings, Set<TopicPartition> of,
      BiConsumer<String, List<ConsumerRecord<byte[], byte[]>>> fetched) {
    this.fetched = fetched;
    consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    consumer.assign(of);
    for (TopicPartition each : of) {
      Fetched own = new Fetched(each);
      byPartition.put(each, own);
      partitions.add(own);
    }
  }

  /** Goes on at these positions, up to these ends or, if they are null, without end. */
  void seek(Map<TopicPartition, Long> from, Map<TopicPartition, Long> until) {
    from.forEach((at, first) -> {
      Fetched each = byPartition.get(at);
      long offset = gaps.behind(at, first);
      if (each.next != offset) {
        consumer.seek(at, offset);
        each.waiting.clear();
        each.next = offset;
      }
      // The batch may have been planned when the topology did not read this topic or partition yet.
      each.end = until == null ? Long.MAX_VALUE : until.getOrDefault(at, offset);
    });
  }

  /** Next offset of each partition: all records before were given. From any thread. */
  Map<TopicPartition, Long> next() {
    Map<TopicPartition, Long> offsets = new HashMap<>();
    partitions.forEach(each -> {
      if (each.next >= 0) {
        offsets.put(each.of, each.next);
      }
    });
    return offsets;
  }

  /** The next record before the ends; null if there is none. Waits until all partitions are fetched that far. */
  ConsumerRecord<byte[], byte[]> next(long limitMs) {
    long deadline = 0;
    while (!isFetched()) {
      poll(200);
      if (deadline == 0) {
        deadline = System.nanoTime() + limitMs * 1_000_000;
      } else if (System.nanoTime() > deadline) {
        throw new org.apache.kafka.common.errors.TimeoutException("Kafka gave nothing of %s for %d ms".formatted(
            partitions.stream().filter(each -> !isFetched(each)).map(each -> each.of).toList(), limitMs));
      }
    }
    ConsumerRecord<byte[], byte[]> first = takeFirst();
    if (first == null) {
      // What is left up to the ends are markers of transactions.
      partitions.forEach(each -> each.next = Math.max(each.next, each.end));
    }
    return first;
  }

  /** The next record, of those at hand the one with the earliest time; null if none comes in time. */
  ConsumerRecord<byte[], byte[]> poll(long limitMs, boolean fetches) {
    if (fetches || partitions.stream().allMatch(each -> each.waiting.isEmpty())) {
      poll(limitMs);
    }
    return takeFirst();
  }

  /** True if no record waits, as of the last answer of Kafka. */
  boolean isCaughtUp() {
    return partitions.stream()
        .allMatch(each -> each.waiting.isEmpty() && consumer.currentLag(each.of).orElse(0) == 0);
  }

  /** Records that Kafka removed before they were given, as {@link Gaps#found}; from any thread. */
  Map<String, Long> gaps() {
    return gaps.found();
  }

  /** Commits the next offsets to the consumer's group, for those who look there how far the topology has come. */
  void note() {
    Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
    next().forEach((at, offset) -> {
      if (offset > 0 && !Long.valueOf(offset).equals(noted.put(at, offset))) {
        offsets.put(at, new OffsetAndMetadata(offset));
      }
    });
    if (!offsets.isEmpty()) {
      consumer.commitSync(offsets);
    }
  }

  @Override
  public void close() {
    boolean interrupted = Thread.interrupted();
    consumer.close(CLOSE);
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  private ConsumerRecord<byte[], byte[]> takeFirst() {
    Fetched first = null;
    ConsumerRecord<byte[], byte[]> found = null;
    for (Fetched each : partitions) {
      ConsumerRecord<byte[], byte[]> head = each.head();
      if (head != null && (found == null || comesBefore(head, found))) {
        first = each;
        found = head;
      }
    }
    if (first == null) {
      return null;
    }
    first.waiting.poll();
    boolean isEmpty = first.waiting.isEmpty();
    first.next = isEmpty ? consumer.position(first.of) : found.offset() + 1;
    if (isEmpty && first.isPaused) {
      first.isPaused = false;
      consumer.resume(List.of(first.of));
    }
    return found;
  }

  private void poll(long limitMs) {
    ConsumerRecords<byte[], byte[]> records;
    try {
      records = consumer.poll(Duration.ofMillis(limitMs));
    } catch (OffsetOutOfRangeException gone) {
      gaps.skip(consumer, gone);
      records = ConsumerRecords.empty();
    }
    for (TopicPartition each : records.partitions()) {
      byPartition.get(each).waiting.addAll(records.records(each));
      fetched.accept(each.topic(), records.records(each));
    }
    for (Fetched each : partitions) {
      if (each.waiting.size() > MOST_WAITING && !each.isPaused) {
        each.isPaused = true;
        consumer.pause(List.of(each.of));
      } else if (each.waiting.isEmpty()) {
        each.next = consumer.position(each.of);
      }
    }
  }

  private boolean isFetched() {
    for (Fetched each : partitions) {
      if (!isFetched(each)) {
        return false;
      }
    }
    return true;
  }

  private boolean isFetched(Fetched each) {
    return !each.waiting.isEmpty() || each.next >= each.end || consumer.position(each.of) >= each.end;
  }

  private static boolean comesBefore(ConsumerRecord<byte[], byte[]> one, ConsumerRecord<byte[], byte[]> other) {
    return one.timestamp() < other.timestamp()
        || one.timestamp() == other.timestamp() && one.topic().compareTo(other.topic()) < 0;
  }
}
