package jmsbridge.streams;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
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

  private final KafkaConsumer<byte[], byte[]> consumer;
  private final Map<TopicPartition, Deque<ConsumerRecord<byte[], byte[]>>> waiting = new HashMap<>();
  private final Map<TopicPartition, Long> next = new HashMap<>();
  private final Set<TopicPartition> paused = new HashSet<>();
  private volatile long lag;

  ShareConsumer(Map<String, Object> settings, Set<TopicPartition> partitions) {
    consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    consumer.assign(partitions);
    partitions.forEach(each -> waiting.put(each, new ArrayDeque<>()));
  }

  /** Goes on at these positions. */
  void seek(Map<TopicPartition, Long> from) {
    from.forEach((at, offset) -> {
      if (!offset.equals(next.get(at))) {
        consumer.seek(at, offset);
        waiting.get(at).clear();
        next.put(at, offset);
      }
    });
  }

  /** Next offset of each partition: all records before were given. */
  Map<TopicPartition, Long> next() {
    return new HashMap<>(next);
  }

  /** The next record before the ends; null if there is none. Waits until all partitions are fetched that far. */
  ConsumerRecord<byte[], byte[]> before(Map<TopicPartition, Long> ends, long limitMs) {
    long deadline = System.nanoTime() + limitMs * 1_000_000;
    while (!isFetched(ends)) {
      poll(200);
      if (System.nanoTime() > deadline) {
        throw new org.apache.kafka.common.errors.TimeoutException(
            "Kafka gave nothing of %s for %d ms".formatted(missing(ends), limitMs));
      }
    }
    TopicPartition first = null;
    for (TopicPartition each : waiting.keySet()) {
      ConsumerRecord<byte[], byte[]> head = head(each, ends);
      if (head != null && (first == null || comesBefore(head, waiting.get(first).peek()))) {
        first = each;
      }
    }
    if (first == null) {
      // What is left up to the ends are markers of transactions.
      next.putAll(ends);
      return null;
    }
    return take(first);
  }

  /** The next record, of those at hand the one with the earliest time; null if none comes in time. */
  ConsumerRecord<byte[], byte[]> poll(long limitMs, boolean fetches) {
    if (fetches || waiting.values().stream().allMatch(Deque::isEmpty)) {
      poll(limitMs);
    }
    TopicPartition first = null;
    for (Map.Entry<TopicPartition, Deque<ConsumerRecord<byte[], byte[]>>> each : waiting.entrySet()) {
      ConsumerRecord<byte[], byte[]> head = each.getValue().peek();
      if (head != null && (first == null || comesBefore(head, waiting.get(first).peek()))) {
        first = each.getKey();
      }
    }
    return first == null ? null : take(first);
  }

  /** Records of the partitions that were not given yet, as of the last answer of Kafka; from any thread. */
  long lag() {
    return lag;
  }

  @Override
  public void close() {
    boolean interrupted = Thread.interrupted();
    consumer.close(CLOSE);
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  private ConsumerRecord<byte[], byte[]> take(TopicPartition from) {
    Deque<ConsumerRecord<byte[], byte[]>> records = waiting.get(from);
    ConsumerRecord<byte[], byte[]> taken = records.poll();
    lag = Math.max(0, lag - 1);
    next.put(from, records.isEmpty() ? consumer.position(from) : taken.offset() + 1);
    if (records.isEmpty() && paused.remove(from)) {
      consumer.resume(List.of(from));
    }
    return taken;
  }

  private void poll(long limitMs) {
    for (ConsumerRecord<byte[], byte[]> each : consumer.poll(Duration.ofMillis(limitMs))) {
      waiting.get(new TopicPartition(each.topic(), each.partition())).add(each);
    }
    List<TopicPartition> full = new ArrayList<>();
    waiting.forEach((at, records) -> {
      if (records.size() > MOST_WAITING && paused.add(at)) {
        full.add(at);
      } else if (records.isEmpty()) {
        next.put(at, consumer.position(at));
      }
    });
    consumer.pause(full);
    long behind = 0;
    for (Map.Entry<TopicPartition, Deque<ConsumerRecord<byte[], byte[]>>> each : waiting.entrySet()) {
      behind += each.getValue().size() + consumer.currentLag(each.getKey()).orElse(0);
    }
    lag = behind;
  }

  private boolean isFetched(Map<TopicPartition, Long> ends) {
    for (Map.Entry<TopicPartition, Long> each : ends.entrySet()) {
      if (waiting.get(each.getKey()).isEmpty() && consumer.position(each.getKey()) < each.getValue()) {
        return false;
      }
    }
    return true;
  }

  private List<TopicPartition> missing(Map<TopicPartition, Long> ends) {
    return ends.keySet().stream()
        .filter(each -> waiting.get(each).isEmpty() && consumer.position(each) < ends.get(each)).toList();
  }

  private ConsumerRecord<byte[], byte[]> head(TopicPartition at, Map<TopicPartition, Long> ends) {
    ConsumerRecord<byte[], byte[]> head = waiting.get(at).peek();
    return head == null || head.offset() >= ends.get(at) ? null : head;
  }

  private static boolean comesBefore(ConsumerRecord<byte[], byte[]> one, ConsumerRecord<byte[], byte[]> other) {
    return one.timestamp() < other.timestamp()
        || one.timestamp() == other.timestamp() && one.topic().compareTo(other.topic()) < 0;
  }
}
