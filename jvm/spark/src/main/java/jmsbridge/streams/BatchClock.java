package jmsbridge.streams;

import java.util.Map;
import java.util.stream.Collectors;
import org.apache.kafka.common.TopicPartition;

/**
 * Clock of a run in batches: a reading counts at the end of the batch in which all is processed that Kafka had at the
 * reading, also what was made of it in internal topics. So the clock makes no record late that waits in Kafka.
 */
final class BatchClock {
  private final Program program;
  private final int levels;
  /** The reading under way; {@link Positions#NEVER}: none. */
  private long reading = Positions.NEVER;
  /** Internal topics, one behind the other, that are read up to the reading. */
  private int level;
  /** What is to be read next for the reading; null: it is not known yet. */
  private Map<TopicPartition, Long> wanted;

  BatchClock(Program program) {
    this.program = program;
    levels = program.clockLevels();
  }

  /**
   * The end of the next batch, with the clock. Equal to its beginning if there is nothing to do.
   *
   * @param start the beginning of the batch
   * @param now the clock before Kafka was asked for its ends
   * @param ends the ends that Kafka had, of all partitions
   * @param planned the end of the batch
   * @param due the time of the clock at which a node has something to do
   */
  Positions positions(
      Positions start, long now, Map<TopicPartition, Long> ends, Map<TopicPartition, Long> planned, long due) {
    long clock = Math.max(now, start.clock());
    long reached = reached(clock, ends, planned);
    boolean isDue = reached >= due && reached > start.reached();
    if (planned.equals(start.next()) && !isDue) {
      return start;
    }
    return new Positions(planned, clock, Math.max(start.reached(), reached));
  }

  /** The reading up to which all is processed behind the batch; {@link Positions#NEVER}: that of the batch before. */
  private long reached(long now, Map<TopicPartition, Long> ends, Map<TopicPartition, Long> planned) {
    if (reading == Positions.NEVER) {
      reading = now;
      level = 0;
    }
    if (wanted == null) {
      wanted = ends.entrySet().stream().filter(each -> program.isInternal(each.getKey().topic()) == level > 0)
          .collect(Collectors.toMap(Map.Entry::getKey, Map.Entry::getValue));
    }
    if (wanted.entrySet().stream().anyMatch(each -> planned.get(each.getKey()) < each.getValue())) {
      return Positions.NEVER;
    }
    wanted = null;
    if (level++ < levels) {
      return Positions.NEVER;
    }
    long latest = reading;
    reading = Positions.NEVER;
    return latest;
  }
}
