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
import java.util.function.Predicate;
import org.apache.kafka.clients.consumer.ConsumerConfig;
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
 * <p>As in Kafka Streams, records wait until those of all other partitions are fetched that Kafka has: a topic that is
 * read ahead would make the records of the others late. Up to fixed ends the order depends on the records alone, so that
 * a second run repeats the first.
 */
final class ShareConsumer implements AutoCloseable {
  /** Records of a partition that are fetched in advance, at most, plus one poll. */
  private static final int MOST_WAITING = 5_000;
  private static final Duration CLOSE = Duration.ofSeconds(1);
  /** Time after which a record that waits for other shares is looked at again, whether there is news of them or not. */
  private static final long HELD_MS = 5;

  /** What is fetched of a partition. */
  private static final class Fetched {
    private final TopicPartition of;
    private final boolean isInternal;
    private final boolean isFeeder;
    private final boolean isFollower;
    private final long maxAhead;
    private final Deque<ConsumerRecord<byte[], byte[]>> waiting = new ArrayDeque<>();
    /** All records before this offset were given; read by other threads. */
    private volatile long next = -1;
    /** Where the batch ends; a batch without an end has the greatest number. */
    private long end = Long.MAX_VALUE;
    private boolean isPaused;
    /** No record waits, but Kafka has some as of its last answer, or has not answered yet. */
    private boolean isBehind = true;

    private Fetched(TopicPartition of, RunSettings settings) {
      this.of = of;
      isInternal = settings.program().isInternal(of.topic());
      isFeeder = settings.order().isFeeder(of.topic());
      isFollower = settings.order().isFollower(of.topic());
      maxAhead = settings.program().maxAhead(of.topic());
    }

    /** The first record that waits, if it is before the end; null if there is none. */
    private ConsumerRecord<byte[], byte[]> head() {
      ConsumerRecord<byte[], byte[]> head = waiting.peek();
      return head == null || head.offset() >= end ? null : head;
    }

    /** The time by which the first record has its turn: one that is ahead of the clock has none, and holds up nothing. */
    private long time(ConsumerRecord<byte[], byte[]> head, ClockReadings clock) {
      if (isInternal) {
        return TaskContext.time(head);
      }
      return clock.isAhead(head, maxAhead) ? StreamRecord.NO_TIME : head.timestamp();
    }
  }

  private final KafkaConsumer<byte[], byte[]> consumer;
  private final Map<TopicPartition, Fetched> byPartition = new HashMap<>();
  private final List<Fetched> partitions = new ArrayList<>();
  private final Gaps gaps = new Gaps();
  /** Offsets that the consumer's group has. */
  private final Map<TopicPartition, Long> noted = new HashMap<>();
  private final BiConsumer<String, List<ConsumerRecord<byte[], byte[]>>> fetched;
  private final Gate gate;
  private final ClockReadings clock;
  private final Map<String, Object> settings;
  /** Asks for ends of partitions; a question of the other consumer would wait behind its fetch. Often null. */
  private KafkaConsumer<byte[], byte[]> ends;
  private final int mostPolled;
  /** The last poll gave as many records as it may, so that the next one probably has some at once. */
  private boolean isFull;
  private boolean isBatch;
  /** The gate has let the first record wait. */
  private boolean isHeld;

  /** Creates the consumer; {@code gate} may be null. */
  ShareConsumer(RunSettings settings, Set<TopicPartition> of, Gate gate, ClockReadings clock) {
    this.gate = gate;
    this.clock = clock;
    // Records of a topic are looked at when they come, some time before they are given.
    fetched = settings.program()::expect;
    this.settings = settings.isExact() ? settings.consumer() : settings.groupConsumer();
    consumer = new KafkaConsumer<>(this.settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    consumer.assign(of);
    Object polled = this.settings.getOrDefault("max.poll.records", ConsumerConfig.DEFAULT_MAX_POLL_RECORDS);
    mostPolled = Integer.parseInt(polled.toString());
    for (TopicPartition partition : of) {
      Fetched queue = new Fetched(partition, settings);
      byPartition.put(partition, queue);
      partitions.add(queue);
    }
  }

  /** Goes on at these positions, up to these ends or, if they are null, without end. */
  void seek(Map<TopicPartition, Long> from, Map<TopicPartition, Long> until) {
    isBatch = until != null;
    isHeld = false;
    from.forEach((at, first) -> {
      Fetched queue = byPartition.get(at);
      long offset = gaps.behind(at, first);
      if (queue.next != offset) {
        consumer.seek(at, offset);
        queue.waiting.clear();
        queue.next = offset;
        queue.isBehind = true;
      }
      // The batch may have been planned when the topology did not read this topic or partition yet.
      queue.end = until == null ? Long.MAX_VALUE : until.getOrDefault(at, offset);
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
    while (isHeld) {
      gate.await(HELD_MS);
      first = takeFirst();
    }
    if (first == null) {
      // What is left up to the ends are markers of transactions.
      partitions.forEach(each -> each.next = Math.max(each.next, each.end));
    }
    return first;
  }

  /** The next record; null if it does not come in time, or has to wait. */
  ConsumerRecord<byte[], byte[]> poll(long limitMs, boolean fetches) {
    if (isHeld && gate.isReading()) {
      poll(HELD_MS);
    } else if (isHeld) {
      gate.await(HELD_MS);
      poll(0);
    } else if (fetches || !isReady()) {
      poll(limitMs);
    }
    return isReady() ? takeFirst() : null;
  }

  /** Whether the first record is known: no partition has any that are not fetched. False if there is none. */
  private boolean isReady() {
    boolean isAny = false;
    for (Fetched queue : partitions) {
      boolean isEmpty = queue.waiting.isEmpty();
      if (isEmpty && queue.isBehind) {
        return false;
      }
      isAny |= !isEmpty;
    }
    if (!isAny && gate != null) {
      gate.idle();
    }
    return isAny;
  }

  /** Whether the present records have ends, as those of a batch. */
  boolean isBatch() {
    return isBatch;
  }

  /** Whether the next record is at hand, as far as it is known without a poll. */
  boolean hasNext() {
    if (isFull) {
      return true;
    }
    for (Fetched queue : partitions) {
      if (!queue.waiting.isEmpty()) {
        return true;
      }
    }
    return false;
  }

  /** True if no record waits, as of the last answer of Kafka. */
  boolean isCaughtUp() {
    return partitions.stream().allMatch(each -> each.waiting.isEmpty() && !each.isBehind);
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
    if (ends != null) {
      ends.close(CLOSE);
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  /** The record with the earliest time; null if there is none, or if it has to wait. */
  private ConsumerRecord<byte[], byte[]> takeFirst() {
    Fetched first = null;
    ConsumerRecord<byte[], byte[]> found = null;
    long earliest = Long.MAX_VALUE;
    long fed = Long.MAX_VALUE;
    for (Fetched queue : partitions) {
      ConsumerRecord<byte[], byte[]> head = queue.head();
      if (head != null) {
        long time = queue.time(head, clock);
        if (found == null || time < earliest || time == earliest && queue.of.topic().compareTo(first.of.topic()) < 0) {
          first = queue;
          found = head;
          earliest = time;
        }
        fed = queue.isFeeder ? Math.min(fed, time) : fed;
      }
    }
    isHeld = first != null && gate != null && !passes(first, earliest, fed);
    if (first == null || isHeld) {
      return null;
    }
    first.waiting.poll();
    boolean isEmpty = first.waiting.isEmpty();
    first.next = isEmpty ? consumer.position(first.of) : found.offset() + 1;
    if (isEmpty) {
      first.isBehind = hasMore(first);
    }
    if (isEmpty && first.isPaused) {
      first.isPaused = false;
      consumer.resume(List.of(first.of));
    }
    return found;
  }

  private boolean passes(Fetched first, long time, long fed) {
    if (fed == Long.MAX_VALUE) {
      gate.idle();
    }
    if (first.isFeeder && !gate.passesFeeder(time, fed)) {
      return false;
    }
    return isBatch || !first.isFollower
        || gate.passesFollower(time, fed, () -> ends(each -> each.isInternal), this::isFetched);
  }

  /** The present ends of all partitions. */
  Map<TopicPartition, Long> ends() {
    return ends(each -> true);
  }

  private Map<TopicPartition, Long> ends(Predicate<Fetched> which) {
    if (ends == null) {
      ends = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }
    return ends.endOffsets(partitions.stream().filter(which).map(each -> each.of).toList());
  }

  /** Whether an internal partition is fetched up to an end, or as far as records are fetched in advance. */
  private boolean isFetched(TopicPartition of, long end) {
    return byPartition.get(of).isPaused || consumer.position(of) >= end;
  }

  private boolean hasMore(Fetched queue) {
    return consumer.currentLag(queue.of).orElse(1) > 0;
  }

  private void poll(long limitMs) {
    ConsumerRecords<byte[], byte[]> records;
    try {
      records = consumer.poll(Duration.ofMillis(limitMs));
    } catch (OffsetOutOfRangeException gone) {
      gaps.skip(consumer, gone);
      records = ConsumerRecords.empty();
    }
    isFull = records.count() >= mostPolled;
    for (TopicPartition partition : records.partitions()) {
      byPartition.get(partition).waiting.addAll(records.records(partition));
      fetched.accept(partition.topic(), records.records(partition));
    }
    for (Fetched queue : partitions) {
      if (queue.waiting.size() > MOST_WAITING && !queue.isPaused) {
        queue.isPaused = true;
        consumer.pause(List.of(queue.of));
      } else if (queue.waiting.isEmpty()) {
        queue.next = consumer.position(queue.of);
        queue.isBehind = hasMore(queue);
      }
    }
  }

  private boolean isFetched() {
    for (Fetched queue : partitions) {
      if (!isFetched(queue)) {
        return false;
      }
    }
    return true;
  }

  private boolean isFetched(Fetched queue) {
    return !queue.waiting.isEmpty() || queue.next >= queue.end || consumer.position(queue.of) >= queue.end;
  }
}
