package jmsbridge.streams;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.TopicPartition;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.PartitionOffset;

/** Next offset of each partition that a topology reads: of all of them, or of those of one share. */
final class Positions extends Offset implements PartitionOffset {
  private static final long serialVersionUID = 1L;
  private static final ObjectMapper JSON = new ObjectMapper();

  private final HashMap<TopicPartition, Long> next;

  Positions(Map<TopicPartition, Long> next) {
    this.next = new HashMap<>(next);
  }

  static Positions read(String json) {
    try {
      Map<String, Map<Integer, Long>> topics = JSON.readValue(json, new TypeReference<>() {});
      Map<TopicPartition, Long> next = new HashMap<>();
      topics.forEach((topic, each) ->
          each.forEach((partition, offset) -> next.put(new TopicPartition(topic, partition), offset)));
      return new Positions(next);
    } catch (JsonProcessingException failure) {
      throw new IllegalArgumentException("the checkpoint has positions that cannot be read: " + json, failure);
    }
  }

  Map<TopicPartition, Long> next() {
    return next;
  }

  @Override
  public String json() {
    Map<String, Map<Integer, Long>> topics = new TreeMap<>();
    next.forEach((at, offset) -> topics.computeIfAbsent(at.topic(), any -> new TreeMap<>()).put(at.partition(), offset));
    try {
      return JSON.writeValueAsString(topics);
    } catch (JsonProcessingException failure) {
      throw new IllegalStateException(failure);
    }
  }
}
