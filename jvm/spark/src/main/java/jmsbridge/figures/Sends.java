package jmsbridge.figures;

import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.Collectors;
import org.apache.kafka.clients.producer.ProducerInterceptor;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.errors.RetriableException;

/**
 * Interceptor of the Kafka sink's producers: counts the records given to them, and those confirmed or failed.
 *
 * <p>Spark checks the result of a send only when the same task writes again or its interval ends, which on a quiet
 * route is minutes late, and offers no way to wait for records that are under way. An interceptor sees sends and
 * results at once. State is static for the reason given at {@link RowCounters}.
 *
 * <p>The class also checks the time limit of the router before each send. A process that was paused, and continues when
 * another router has taken over, gives no more records to a producer. A process whose producer gives up a record ends
 * at once.
 */
public final class Sends implements ProducerInterceptor<byte[], byte[]> {
  /** Copy of {@code KafkaProducer.NETWORK_THREAD_PREFIX}, whose use would need more jars to compile against. */
  private static final String PRODUCERS_OWN_THREAD = "kafka-producer-network-thread";

  private static final LongAdder SENT = new LongAdder();
  private static final LongAdder ACKNOWLEDGED = new LongAdder();
  private static final LongAdder FAILED = new LongAdder();
  private static final AtomicReference<String> FAILURE = new AtomicReference<>();
  private static final int MOST_REFUSED = 1000;
  private static final Queue<String> REFUSED = new ArrayBlockingQueue<>(MOST_REFUSED);

  private static volatile long[] base = new long[3];
  private static volatile Long end = null;

  /** Thrown for a record after the time limit. An error, since producers swallow exceptions of an interceptor. */
  public static final class TooLateError extends Error {
    private static final long serialVersionUID = 1L;

    TooLateError() {
      super("this router does not lead any more, as far as it knows: nothing is sent");
    }
  }

  /** Sets the time limit: no record is sent after that moment of {@link System#nanoTime}. */
  public static void until(long nanoTime) {
    end = nanoTime;
  }

  /** Time until the limit in nanoseconds, negative after it; the greatest long if there is none. */
  public static long remainingNanos() {
    Long last = end;
    return last == null ? Long.MAX_VALUE : last - System.nanoTime();
  }

  /** Removes the time limit; initially there is none. For tests, whose routers share one JVM. */
  public static void always() {
    end = null;
  }

  @Override
  public ProducerRecord<byte[], byte[]> onSend(ProducerRecord<byte[], byte[]> record) {
    if (remainingNanos() < 0) {
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

  /** Notes a record that Kafka has refused for its own sake, by the journal position of its message. */
  public static void refused(String topic, RowPlace place, Exception why) {
    String where = place.partition() + "\n" + place.offset() + "\n" + place.copy();
    REFUSED.offer(where + "\n" + topic + "\n" + why.getClass().getName() + "\n" + why.getMessage());
  }

  /** True in the network thread of a producer. A record that a producer never accepted fails in its sender's thread. */
  private static boolean isProducersOwnThread() {
    return Thread.currentThread().getName().startsWith(PRODUCERS_OWN_THREAD);
  }

  /**
   * Ends the process. The producer has given up a record and would send the records after it as soon as Kafka accepts
   * them again, so that messages of one key would change their order. The next start finds out which have arrived.
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

  /** Starts new figures. The caller must have waited until no record is under way ({@link #underWay}). */
  static void begin() {
    base = new long[] {SENT.sum(), ACKNOWLEDGED.sum(), FAILED.sum()};
    FAILURE.set(null);
    REFUSED.clear();
  }

  /** Number of records that producers of this JVM have neither confirmed nor given up. */
  public static long underWay() {
    long finished = ACKNOWLEDGED.sum() + FAILED.sum();
    return SENT.sum() - finished;
  }

  /**
   * The figures since {@link #begin} as JSON members; `failure` is the first failure: topic, class, message; `refused`
   * has the records that Kafka refused for their own sake: journal partition, offset and copy, topic, class,
   * message.
   */
  static String read() {
    long[] from = base;
    String failure = FAILURE.get();
    String text = failure == null ? "" : encoded(failure);
    String refused = REFUSED.stream().map(each -> "\"" + encoded(each) + "\"").collect(Collectors.joining(","));
    return "\"acknowledged\":" + (ACKNOWLEDGED.sum() - from[1])
        + ",\"failed\":" + (FAILED.sum() - from[2])
        + ",\"sent\":" + (SENT.sum() - from[0])
        + ",\"failure\":\"" + text + "\""
        + ",\"refused\":[" + refused + "]";
  }

  private static String encoded(String text) {
    return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
  }
}
