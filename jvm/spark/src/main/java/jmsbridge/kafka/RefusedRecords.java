package jmsbridge.kafka;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.InvalidTopicException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.errors.TopicAuthorizationException;

/** Records that Kafka refused in earlier attempts, which are not sent once more. */
public final class RefusedRecords {
  /** Time after which a topic is tried again, whose rights or rules Kafka tells only when something is sent. */
  private static final long TOPIC_MS = 300_000;

  private record Refusal(String topic, String kind, String error, int size, String digest, long time) {
    boolean isOfTopic() {
      return kind.equals(TopicAuthorizationException.class.getSimpleName())
          || kind.equals(InvalidTopicException.class.getSimpleName());
    }

    boolean covers(ProducerRecord<byte[], byte[]> record, int bytes) {
      if (isOfTopic()) {
        return System.currentTimeMillis() - time < TOPIC_MS;
      }
      return kind.equals(RecordTooLargeException.class.getSimpleName())
          ? bytes >= size
          : bytes == size && digest.equals(RefusedRecordException.digest(record));
    }
  }

  private final List<Refusal> refusals = new ArrayList<>();

  /** Reads the messages of {@link RefusedRecordException}. */
  public RefusedRecords(List<String> messages) {
    for (String message : messages) {
      try {
        JsonNode fields = new ObjectMapper().readTree(message);
        refusals.add(new Refusal(fields.get("topic").asText(), fields.get("kind").asText(),
            fields.get("error").asText(), fields.get("size").asInt(), fields.get("digest").asText(),
            fields.get("time").asLong()));
      } catch (JsonProcessingException impossible) {
        throw new IllegalStateException(impossible);
      }
    }
  }

  /** Why Kafka does not take a record of a size in bytes, in one line that names its topic; null: nothing is known. */
  public String why(ProducerRecord<byte[], byte[]> record, int size) {
    for (Refusal each : refusals) {
      if (each.topic().equals(record.topic()) && each.covers(record, size)) {
        return "topic '%s' does not take it: %s".formatted(each.topic(), each.error());
      }
    }
    return null;
  }

  /** Why Kafka takes nothing for a topic, in one line that names it; null: it takes something, as far as is known. */
  public String whyNothing(String topic) {
    for (Refusal each : refusals) {
      if (each.isOfTopic() && each.topic().equals(topic) && System.currentTimeMillis() - each.time() < TOPIC_MS) {
        return "topic '%s' takes no records: %s".formatted(topic, each.error());
      }
    }
    return null;
  }
}
