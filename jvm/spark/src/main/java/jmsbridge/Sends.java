package jmsbridge;

import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.clients.producer.ProducerInterceptor;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.errors.RetriableException;

/**
 * Knows what the Kafka sink has handed to its producers and what became of it.
 *
 * <p>Spark looks at the result of a send when the same task writes again or its interval ends, which on a quiet route
 * is minutes late, and gives no way to wait for what is under way. As an interceptor of the sink's producers this class
 * sees both at once. State is static for the reason given at {@link Tally}.
 *
 * <p>It is also the last one to look at the clock. A process that stood still and goes on, when another router does its
 * work by then, hands nothing more to a producer. One whose producer gives a record up ends at once.
 */
public final class Sends implements ProducerInterceptor<byte[], byte[]> {
  /** As {@code KafkaProducer.NETWORK_THREAD_PREFIX}, which needs more to compile against than this constant. */
  private static final String PRODUCERS_OWN_THREAD = "kafka-producer-network-thread";

  private static final LongAdder SENT = new LongAdder();
  private static final LongAdder ACKNOWLEDGED = new LongAdder();
  private static final LongAdder FAILED = new LongAdder();
  private static final AtomicReference<String> FAILURE = new AtomicReference<>();

  private static volatile long[] base = new long[3];
  private static volatile Long end = null;

  /** Thrown where a record comes too late. Producers swallow exceptions of an interceptor, but no errors. */
  public static final class TooLateError extends Error {
    private static final long serialVersionUID = 1L;

    TooLateError() {
      super("this router does not lead any more, as far as it knows: nothing is sent");
    }
  }

  /** From the first call on, nothing is sent after that moment of {@link System#nanoTime}. */
  public static void until(long nanoTime) {
    end = nanoTime;
  }

  /** As it is in the beginning. For tests, whose routers share one JVM. */
  public static void always() {
    end = null;
  }

  @Override
  public ProducerRecord<byte[], byte[]> onSend(ProducerRecord<byte[], byte[]> record) {
    Long last = end;
    if (last != null && System.nanoTime() - last > 0) {
      throw new TooLateError();
    }
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
      if (failure instanceof RetriableException && isProducersOwnThread()) {
        giveUp(topic, failure);
      }
    }
  }

  /** Whether a record was in a producer's keeping; one that a producer never took fails in its sender's thread. */
  private static boolean isProducersOwnThread() {
    return Thread.currentThread().getName().startsWith(PRODUCERS_OWN_THREAD);
  }

  /**
   * Ends the process. The producer has given up a record, and sends those behind it as soon as Kafka takes them again:
   * messages of one key would change places. Who starts the router again finds out what has arrived.
   */
  private static void giveUp(String topic, Exception failure) {
    System.err.println("Kafka has not taken a record for topic " + topic + ": " + failure.getMessage()
        + ". This process ends, so that nothing overtakes it");
    Runtime.getRuntime().halt(1);
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
