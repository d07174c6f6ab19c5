package jmsbridge.streams;

import java.util.Map;
import org.apache.kafka.common.TopicPartition;

/**
 * Clock of a share in real time: a reading counts when all is processed that Kafka had at the reading. So the clock makes
 * no record late that waits in Kafka.
 */
final class ShareClock {
  private static final long LOOK_NANOS = 20_000_000;
  /** Of the time since the state was committed, so much passes between two readings: few fit beside a position. */
  private static final long PART = 12;

  private final ShareConsumer consumer;
  private long begun;
  private long lookedAt;
  private long reachedAt;
  /** The reading under way; {@link Positions#NEVER}: none. */
  private long reading = Positions.NEVER;
  private Map<TopicPartition, Long> ends;

  ShareClock(ShareConsumer consumer) {
    this.consumer = consumer;
  }

  /** Takes note that the state has been committed. */
  void begin() {
    begun = System.nanoTime();
  }

  /** The time of the clock up to which the task is to do now what is due; {@link Positions#NEVER}: nothing. */
  long reached(Task task) {
    long nanos = System.nanoTime();
    if (reading == Positions.NEVER) {
      if (nanos - lookedAt < LOOK_NANOS || nanos - reachedAt < (nanos - begun) / PART) {
        return Positions.NEVER;
      }
      lookedAt = nanos;
      long now = System.currentTimeMillis();
      if (task.due() > now || task.reached() >= now) {
        return Positions.NEVER;
      }
      ends = consumer.ends();
      reading = now;
    }
    Map<TopicPartition, Long> next = consumer.next();
    if (ends.entrySet().stream().anyMatch(each -> next.getOrDefault(each.getKey(), 0L) < each.getValue())) {
      return Positions.NEVER;
    }
    long latest = reading;
    reading = Positions.NEVER;
    reachedAt = nanos;
    return latest;
  }
}
