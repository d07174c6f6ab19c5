package jmsbridge.streams;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import org.apache.kafka.common.TopicPartition;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.PartitionOffset;

/**
 * Next offset of each partition that a topology reads: of all of them, or of those of one share. In batches with the
 * clock, which a repeated batch thus finds as the first one did.
 */
final class Positions extends Offset implements PartitionOffset {
  private static final long serialVersionUID = 1L;
  private static final ObjectMapper JSON = new ObjectMapper();
  /** Time before all others. */
  static final long NEVER = Long.MIN_VALUE;
  /** Beside the topics; none of them can have this name. */
  private static final String CLOCK = ":clock";

  private final HashMap<TopicPartition, Long> next;
  private final long clock;
  private final long reached;

  Positions(Map<TopicPartition, Long> next) {
    this(next, NEVER, NEVER);
  }

  /**
   * Creates positions with the clock, in milliseconds since 1970.
   *
   * @param clock what it showed when the positions were planned
   * @param reached the time up to which all is done that is due
   */
  Positions(Map<TopicPartition, Long> next, long clock, long reached) {
    this.next = new HashMap<>(next);
    this.clock = clock;
    this.reached = reached;
  }

  static Positions read(String json) {
    try {
      Map<String, Map<String, Long>> topics = JSON.readValue(json, new TypeReference<>() {});
      Map<String, Long> clock = Objects.requireNonNullElse(topics.remove(CLOCK), Map.of());
      Map<TopicPartition, Long> next = new HashMap<>();
      topics.forEach((topic, each) -> each.forEach(
          (partition, offset) -> next.put(new TopicPartition(topic, Integer.parseInt(partition)), offset)));
      return new Positions(next, clock.getOrDefault("shows", NEVER), clock.getOrDefault("reached", NEVER));
    } catch (JsonProcessingException | NumberFormatException failure) {
      throw new IllegalArgumentException("the checkpoint has positions that cannot be read: " + json, failure);
    }
  }

  Map<TopicPartition, Long> next() {
    return next;
  }

  long clock() {
    return clock;
  }

  long reached() {
    return reached;
  }

  /** The time of the clock up to which what is due is done from other positions to these; {@link #NEVER}: nothing is. */
  long tickAfter(Positions start) {
    return reached > start.reached ? reached : NEVER;
  }

  /** Number of records from other positions to these, of partitions that both have. */
  long after(Positions start) {
    return next.entrySet().stream()
        .mapToLong(each -> each.getValue() - start.next.getOrDefault(each.getKey(), each.getValue())).sum();
  }

  @Override
  public String json() {
    Map<String, Map<String, Long>> topics = new TreeMap<>();
    next.forEach((at, offset) ->
        topics.computeIfAbsent(at.topic(), any -> new TreeMap<>()).put(Integer.toString(at.partition()), offset));
    if (clock != NEVER) {
      topics.put(CLOCK, new TreeMap<>(Map.of("shows", clock, "reached", reached)));
    }
    try {
      return JSON.writeValueAsString(topics);
    } catch (JsonProcessingException failure) {
      throw new IllegalStateException(failure);
    }
  }
}
