package jmsbridge.streams;

import java.util.Map;
import java.util.function.BiPredicate;
import java.util.function.Supplier;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.spark.TaskContext;

/** Hold on the records of a share that would make others late behind an internal topic. */
final class Gate {
  private final ReadOrder order;
  /** Null if the share waits for no others. */
  private final Pace pace;
  private final int share;
  private final Runnable deliver;
  private long batch;
  /** What the pace knows of this share. */
  private long reached;
  private long feederLimit;
  private long followerLimit;
  /** Ends of the internal topics at which all is there of records before a time. */
  private Map<TopicPartition, Long> ends;
  private long endsTime;

  /** Creates the gate of a share; {@code deliver} waits until Kafka has all that was made of the records so far. */
  Gate(ReadOrder order, Pace pace, int share, Runnable deliver) {
    this.order = order;
    this.pace = pace;
    this.share = share;
    this.deliver = deliver;
  }

  void begin(long of) {
    batch = of;
    reached = Long.MIN_VALUE;
    feederLimit = Long.MIN_VALUE;
    followerLimit = Long.MIN_VALUE;
    ends = null;
    if (pace != null) {
      pace.begin(share, of);
    }
  }

  /** Takes note that Kafka has what was made of all records of the batch. */
  void end() {
    reach(Long.MAX_VALUE);
  }

  /**
   * Whether a record of a topic that feeds an internal one may be processed.
   *
   * @param time the record's time
   * @param shareTime the time of the first record of all such topics of the share
   */
  boolean passesFeeder(long time, long shareTime) {
    if (pace == null) {
      return true;
    }
    if (time > feederLimit) {
      feederLimit = order.limit(Math.min(least(shareTime), time));
    }
    return time <= feederLimit;
  }

  /**
   * Whether a record may be processed that meets those of an internal topic.
   *
   * @param time the record's time
   * @param shareTime the time of the first record of the topics of the share that feed internal ones
   * @param ask gives the present ends of the internal partitions of the share
   * @param isFetched whether a partition is fetched up to an end
   */
  boolean passesFollower(
      long time, long shareTime, Supplier<Map<TopicPartition, Long>> ask,
      BiPredicate<TopicPartition, Long> isFetched) {
    if (time > followerLimit && ends == null) {
      endsTime = Math.min(least(shareTime), time);
      ends = ask.get();
    }
    if (ends != null && ends.entrySet().stream().allMatch(each -> isFetched.test(each.getKey(), each.getValue()))) {
      followerLimit = order.limit(endsTime);
      ends = null;
    }
    return time <= followerLimit;
  }

  /** Takes note that nothing of the topics that feed internal ones waits, once Kafka has what was made of it. */
  void idle() {
    if (pace != null) {
      least(Long.MAX_VALUE);
    }
  }

  /** Whether the record that waits does so until an internal topic is fetched. */
  boolean isReading() {
    return ends != null;
  }

  /** Waits a moment for the other shares; InterruptException if the task is to end. */
  void await(long limitMs) {
    TaskContext context = TaskContext.get();
    if (context != null && context.isInterrupted()) {
      throw new InterruptException("the task is to end");
    }
    if (pace != null) {
      pace.await(limitMs);
    }
  }

  private long least(long shareTime) {
    if (shareTime > reached) {
      deliver.run();
    }
    reach(shareTime);
    return pace == null ? shareTime : Math.min(shareTime, pace.least(batch));
  }

  private void reach(long time) {
    if (time != reached) {
      reached = time;
      if (pace != null) {
        pace.reached(share, time);
      }
    }
  }
}
