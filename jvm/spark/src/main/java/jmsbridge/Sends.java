package jmsbridge;

import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.clients.producer.ProducerInterceptor;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;

/**
 * Knows what the Kafka sink has handed to its producers and what became of it.
 *
 * <p>Spark looks at the result of a send when the same task writes again or its interval ends, which on a quiet route
 * is minutes late, and gives no way to wait for what is under way. As an interceptor of the sink's producers this class
 * sees both at once. State is static for the reason given at {@link Tally}.
 */
public final class Sends implements ProducerInterceptor<byte[], byte[]> {
  private static final LongAdder SENT = new LongAdder();
  private static final LongAdder ACKNOWLEDGED = new LongAdder();
  private static final LongAdder FAILED = new LongAdder();
  private static final AtomicReference<String> FAILURE = new AtomicReference<>();

  private static volatile long[] base = new long[3];

  @Override
  public ProducerRecord<byte[], byte[]> onSend(ProducerRecord<byte[], byte[]> record) {
    SENT.increment();
    return record;
  }

  @Override
  public void onAcknowledgement(RecordMetadata metadata, Exception failure) {
    if (failure == null) {
      ACKNOWLEDGED.increment();
    } else {
      String topic = metadata == null ? "" : metadata.topic();
      FAILURE.compareAndSet(null, topic + "\n" + failure.getClass().getName() + "\n" + failure.getMessage());
      FAILED.increment();
    }
  }

  @Override
  public void configure(Map<String, ?> settings) {}

  @Override
  public void close() {}

  /** Starts new figures; what is still under way from before must have been waited for ({@link #underWay}). */
  static void begin() {
    base = new long[] {SENT.sum(), ACKNOWLEDGED.sum(), FAILED.sum()};
    FAILURE.set(null);
  }

  /** Records handed to producers in this JVM whose fate is not known yet. */
  public static long underWay() {
    long finished = ACKNOWLEDGED.sum() + FAILED.sum();
    return SENT.sum() - finished;
  }

  /** The figures since {@link #begin} as JSON members; `failure` is the first one: topic, class, message. */
  static String read() {
    long[] from = base;
    String failure = FAILURE.get();
    String text = failure == null ? "" : Base64.getEncoder().encodeToString(failure.getBytes(StandardCharsets.UTF_8));
    return "\"acknowledged\":" + (ACKNOWLEDGED.sum() - from[1])
        + ",\"failed\":" + (FAILED.sum() - from[2])
        + ",\"sent\":" + (SENT.sum() - from[0])
        + ",\"failure\":\"" + text + "\"";
  }
}
