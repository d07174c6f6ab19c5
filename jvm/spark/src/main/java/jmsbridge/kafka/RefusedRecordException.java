package jmsbridge.kafka;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.Set;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.InvalidRecordException;
import org.apache.kafka.common.errors.InvalidTimestampException;
import org.apache.kafka.common.errors.InvalidTopicException;
import org.apache.kafka.common.errors.PolicyViolationException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.errors.TopicAuthorizationException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/**
 * Kafka has refused a record for its own sake or for its topic's. The message is a JSON object: {@code topic}, {@code
 * kind} (class of Kafka's error), {@code error}, {@code size} in bytes, {@code digest} of key, value and time,
 * and {@code time} of the refusal in milliseconds since 1970.
 */
public final class RefusedRecordException extends RuntimeException {
  private static final long serialVersionUID = 1L;
  private static final Set<Class<?>> OF_RECORDS = Set.of(
      RecordTooLargeException.class, InvalidRecordException.class, InvalidTimestampException.class,
      PolicyViolationException.class, InvalidTopicException.class, TopicAuthorizationException.class);

  /** Creates the exception for Kafka's error about a record of a size in bytes. */
  public RefusedRecordException(ProducerRecord<byte[], byte[]> record, int size, Exception error) {
    super(text(record.topic(), size, digest(record), error.getClass().getSimpleName(), error.getMessage()), error);
  }

  /** Creates the exception for records on their way to a topic that is gone. */
  public RefusedRecordException(String topic, String trouble) {
    super(text(topic, 0, "", UnknownTopicOrPartitionException.class.getSimpleName(), trouble));
  }

  /** True if an error of a send says that Kafka does not take this record, though it is usable for others. */
  public static boolean is(Exception error) {
    return OF_RECORDS.contains(error.getClass());
  }

  private static String text(String topic, int size, String digest, String kind, String error) {
    ObjectMapper mapper = new ObjectMapper();
    ObjectNode fields = mapper.createObjectNode();
    fields.put("topic", topic).put("kind", kind).put("error", String.valueOf(error)).put("size", size);
    fields.put("digest", digest).put("time", System.currentTimeMillis());
    try {
      return mapper.writeValueAsString(fields);
    } catch (JsonProcessingException impossible) {
      throw new IllegalStateException(impossible);
    }
  }

  /** What tells one record of a topic from others. */
  static String digest(ProducerRecord<byte[], byte[]> record) {
    try {
      MessageDigest digest = MessageDigest.getInstance("SHA-256");
      add(digest, record.key());
      add(digest, record.value());
      digest.update(String.valueOf(record.timestamp()).getBytes(StandardCharsets.UTF_8));
      return HexFormat.of().formatHex(digest.digest());
    } catch (NoSuchAlgorithmException impossible) {
      throw new IllegalStateException(impossible);
    }
  }

  private static void add(MessageDigest digest, byte[] part) {
    digest.update((part == null ? "-" : part.length + ":").getBytes(StandardCharsets.UTF_8));
    if (part != null) {
      digest.update(part);
    }
  }
}
