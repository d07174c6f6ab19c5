package jmsbridge.streams;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.common.TopicPartition;

/** Records that Kafka removed before a consumer has read them. The consumer goes on behind them. */
final class Gaps {
  private final Map<String, Long> found = new ConcurrentHashMap<>();
  /** Offset behind the last gap of each partition. */
  private final Map<TopicPartition, Long> ends = new HashMap<>();

  /**
   * Moves a consumer to the first records that Kafka still has.
   *
   * @return the new position of each partition that was moved
   * @throws OffsetOutOfRangeException the same, if a position is behind the end: the topic is another one, or has lost its
   *     end
   */
  Map<TopicPartition, Long> skip(KafkaConsumer<byte[], byte[]> consumer, OffsetOutOfRangeException outOfRange) {
    Map<TopicPartition, Long> wanted = outOfRange.offsetOutOfRangePartitions();
    Map<TopicPartition, Long> beginnings = consumer.beginningOffsets(wanted.keySet());
    wanted.forEach((at, from) -> {
      if (beginnings.get(at) <= from) {
        throw outOfRange;
      }
    });
    beginnings.forEach((at, to) -> {
      consumer.seek(at, to);
      found.put(at.topic() + "\t" + at.partition() + "\t" + wanted.get(at), to);
      ends.put(at, to);
    });
    return beginnings;
  }

  /** An offset of a partition, or the end of the partition's last gap if that is behind it. */
  long behind(TopicPartition partition, long offset) {
    return Math.max(offset, ends.getOrDefault(partition, 0L));
  }

  /** Offset behind each gap by topic, partition and first offset, with tabs between them; from any thread. */
  Map<String, Long> found() {
    return Map.copyOf(found);
  }
}
