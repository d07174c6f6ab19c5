package jmsbridge.streams;

import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Ends of batches at which all topics have come to the same time: one that is read further ahead would make the records
 * of the others late in the next batch.
 *
 * <p>A topic that meets an internal topic is read up to the time that all records have reached that were written to the
 * internal topic before: it is one batch behind those from which the internal topic is filled.
 */
final class BatchEnds implements AutoCloseable {
  private static final Duration POLL = Duration.ofMillis(200);
  private static final Duration CLOSE = Duration.ofSeconds(1);
  private static final long LIMIT_NANOS = 60_000_000_000L;
  private static final long LOOK_NANOS = 5_000_000;
  /** Time for which a batch waits for transactions of others, at most. */
  private static final long OPEN_NANOS = 2_000_000_000L;

  private final RunSettings settings;
  private final ReadOrder order;
  private final Gaps gaps = new Gaps();
  private KafkaConsumer<byte[], byte[]> consumer;
  /** The present ends at the plan before, and how far its batch has read what feeds internal topics. */
  private Map<TopicPartition, Long> seen = Map.of();
  private Map<TopicPartition, Long> fed = Map.of();

  BatchEnds(RunSettings settings) {
    this.settings = settings;
    order = settings.order();
  }

  /** The ends of a batch that begins at these positions; {@code ask} gives the present ends of all partitions. */
  Map<TopicPartition, Long> of(Map<TopicPartition, Long> from, Supplier<Map<TopicPartition, Long>> ask) {
    Map<TopicPartition, Long> ends = committed(from, ask);
    Map<TopicPartition, Long> most = new HashMap<>();
    ends.forEach((at, end) -> most.put(at, Math.min(end, from.get(at) + settings.mostRecords())));
    Map<TopicPartition, Long> cuts = times(only(most, at -> most.get(at) < ends.get(at)), ends);
    long cut = cuts.values().stream().mapToLong(Long::longValue).min().orElse(Long.MAX_VALUE);
    long ready = ready(from, ends);
    Map<TopicPartition, Long> limits = new HashMap<>();
    most.forEach((at, end) -> {
      long limit = order.isDelayed(at.topic()) ? Math.min(cut, ready) : cut;
      if (end > from.get(at) && limit != Long.MAX_VALUE && !isInternal(at)) {
        limits.put(at, limit);
      }
    });
    Map<TopicPartition, Long> planned = new HashMap<>(most);
    planned.putAll(upTo(limits, from, most));
    letThrough(from, planned, most, cut);
    if (planned.equals(from)) {
      // All that waits has the time of the first record behind the limit.
      cuts.entrySet().stream().min(Map.Entry.comparingByValue())
          .ifPresent(each -> planned.put(each.getKey(), most.get(each.getKey())));
    }
    seen = ends;
    fed = only(planned, at -> order.isFeeder(at.topic()));
    return planned;
  }

  /** The ends that all partitions had at the last plan. */
  Map<TopicPartition, Long> seen() {
    return seen;
  }

  @Override
  public void close() {
    if (consumer != null) {
      consumer.close(CLOSE);
    }
  }

  /**
   * The present ends, at which the internal topics have all of the batch before: Kafka ends transactions a moment after it
   * has said that it would. Not at the first batch of a run: transactions of a run that was killed stay open until the
   * tasks of this one begin.
   *
   * <p>Other topics with new records have all that is written to them by now, unless its transaction stays open for long.
   * Transactions become visible one after the other, and even one of them in one partition before the next: an end between
   * them would make the records that are still hidden late.
   */
  private Map<TopicPartition, Long> committed(
      Map<TopicPartition, Long> from, Supplier<Map<TopicPartition, Long>> ask) {
    Map<TopicPartition, Long> first = ask.get();
    boolean awaitsOwn = awaitsOwn(first.keySet());
    boolean awaitsOthers = !settings.program().statefulNames().isEmpty()
        && first.keySet().stream().anyMatch(at -> !isInternal(at) && first.get(at) > from.get(at));
    Map<TopicPartition, Long> awaited = only(first, at -> isInternal(at) ? awaitsOwn : awaitsOthers);
    if (awaited.isEmpty()) {
      return first;
    }
    Map<TopicPartition, Long> written = consumer().endOffsets(awaited.keySet());
    Map<TopicPartition, Long> ends = first;
    long begun = System.nanoTime();
    while (isBefore(ends, written, System.nanoTime() - begun)) {
      LockSupport.parkNanos(LOOK_NANOS);
      if (Thread.interrupted()) {
        throw new InterruptException(new InterruptedException());
      }
      ends = ask.get();
    }
    return ends;
  }

  /** Whether a batch is to have all that the one before has written to the internal topics. */
  private boolean awaitsOwn(Set<TopicPartition> partitions) {
    boolean isBehind = settings.program().clockLevels() > 0;
    return settings.isExact() && !seen.isEmpty() && partitions.stream()
        .anyMatch(at -> order.isDelayed(at.topic()) || (isBehind || order.isFeeder(at.topic())) && isInternal(at));
  }

  private boolean isBefore(Map<TopicPartition, Long> ends, Map<TopicPartition, Long> written, long waited) {
    return written.entrySet().stream().anyMatch(each -> ends.get(each.getKey()) < each.getValue()
        && waited < (isInternal(each.getKey()) ? LIMIT_NANOS : OPEN_NANOS));
  }

  private boolean hasDelayed(Map<TopicPartition, Long> of) {
    return of.keySet().stream().anyMatch(at -> order.isDelayed(at.topic()));
  }

  /** The time that has been reached by all that fills the internal topics which other topics meet. */
  private long ready(Map<TopicPartition, Long> from, Map<TopicPartition, Long> ends) {
    if (!hasDelayed(ends)) {
      return Long.MAX_VALUE;
    }
    Map<TopicPartition, Long> waiting =
        only(from, at -> order.isFeeder(at.topic()) && from.get(at) < ends.getOrDefault(at, 0L));
    return times(waiting, ends).values().stream().mapToLong(Long::longValue).min().orElse(Long.MAX_VALUE);
  }

  /**
   * Lets topics that meet internal ones read what was there at the plan before, if all else that was there has been read:
   * a single old record holds them for one batch.
   */
  private void letThrough(
      Map<TopicPartition, Long> from, Map<TopicPartition, Long> planned, Map<TopicPartition, Long> most, long cut) {
    boolean isRead = cut == Long.MAX_VALUE
        && fed.keySet().stream().allMatch(at -> from.getOrDefault(at, 0L) >= seen.getOrDefault(at, Long.MAX_VALUE));
    if (isRead) {
      only(planned, at -> order.isDelayed(at.topic()) && seen.containsKey(at)).forEach(
          (at, end) -> planned.put(at, Math.max(end, Math.min(seen.get(at), most.get(at)))));
    }
  }

  /** Offset of the first record of each partition that is not before a time, from a position on. */
  private Map<TopicPartition, Long> upTo(
      Map<TopicPartition, Long> limits, Map<TopicPartition, Long> from, Map<TopicPartition, Long> most) {
    Map<TopicPartition, Long> asked = only(limits, at -> limits.get(at) >= 0);
    Map<TopicPartition, OffsetAndTimestamp> firsts = asked.isEmpty() ? Map.of() : consumer().offsetsForTimes(asked);
    Map<TopicPartition, Long> limited = new HashMap<>();
    limits.forEach((at, limit) -> {
      OffsetAndTimestamp first = firsts.get(at);
      long offset = limit < 0 ? from.get(at) : first == null ? most.get(at) : first.offset();
      limited.put(at, Math.max(from.get(at), Math.min(offset, most.get(at))));
    });
    // A later time before the position, or one that is ahead of the clock, hides what comes behind it.
    Map<TopicPartition, Long> hidden = only(limited, at -> firsts.get(at) != null
        && (firsts.get(at).offset() < from.get(at) || isAhead(at.topic(), firsts.get(at).timestamp())));
    times(only(from, hidden::containsKey), most).forEach((at, time) -> {
      if (time < limits.get(at) || time == Long.MAX_VALUE) {
        limited.put(at, most.get(at));
      }
    });
    return limited;
  }

  /** Time of the first record at or behind each offset; the greatest if there is none before the end, or it has none. */
  private Map<TopicPartition, Long> times(Map<TopicPartition, Long> offsets, Map<TopicPartition, Long> ends) {
    Map<TopicPartition, Long> times = new HashMap<>();
    if (offsets.isEmpty()) {
      return times;
    }
    // Partitions that stay assigned would stay paused.
    consumer().unsubscribe();
    consumer.assign(offsets.keySet());
    offsets.forEach((at, offset) -> consumer.seek(at, gaps.behind(at, offset)));
    long begun = System.nanoTime();
    while (times.size() < offsets.size()) {
      ConsumerRecords<byte[], byte[]> records = poll();
      for (TopicPartition partition : records.partitions()) {
        times.put(partition, time(records.records(partition).get(0)));
        consumer.pause(Set.of(partition));
      }
      offsets.keySet().stream().filter(at -> !times.containsKey(at) && consumer.position(at) >= ends.get(at))
          .forEach(at -> times.put(at, Long.MAX_VALUE));
      if (System.nanoTime() - begun > LIMIT_NANOS) {
        throw new TimeoutException("Kafka gave nothing of %s for %d s".formatted(
            only(offsets, at -> !times.containsKey(at)).keySet(), LIMIT_NANOS / 1_000_000_000));
      }
    }
    return times;
  }

  private long time(ConsumerRecord<byte[], byte[]> record) {
    if (!settings.program().isInternal(record.topic())) {
      return isAhead(record.topic(), record.timestamp()) ? Long.MAX_VALUE : record.timestamp();
    }
    long time = TaskContext.time(record);
    return time < 0 ? Long.MAX_VALUE : time;
  }

  /** Whether a record will have no time, since it is ahead of the clock. */
  private boolean isAhead(String topic, long time) {
    long lead = settings.program().maxAhead(topic);
    return lead >= 0 && time - lead > System.currentTimeMillis();
  }

  private boolean isInternal(TopicPartition partition) {
    return settings.program().isInternal(partition.topic());
  }

  private ConsumerRecords<byte[], byte[]> poll() {
    try {
      return consumer.poll(POLL);
    } catch (OffsetOutOfRangeException gone) {
      gaps.skip(consumer, gone);
      return ConsumerRecords.empty();
    }
  }

  private KafkaConsumer<byte[], byte[]> consumer() {
    if (consumer == null) {
      Map<String, Object> own = new HashMap<>(settings.consumer());
      // One record of each partition is enough; Kafka gives one batch of records at least.
      own.put("max.partition.fetch.bytes", "1024");
      own.put("isolation.level", "read_uncommitted");
      consumer = new KafkaConsumer<>(own, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }
    return consumer;
  }

  private static Map<TopicPartition, Long> only(
      Map<TopicPartition, Long> of, Predicate<TopicPartition> which) {
    return of.entrySet().stream().filter(each -> which.test(each.getKey()))
        .collect(Collectors.toMap(Map.Entry::getKey, Map.Entry::getValue));
  }
}
