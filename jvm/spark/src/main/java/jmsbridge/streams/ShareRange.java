package jmsbridge.streams;

import java.util.Map;
import org.apache.kafka.common.TopicPartition;
import org.apache.spark.sql.connector.read.InputPartition;

/**
 * What a task reads: partition {@code share} of every topic.
 *
 * @param from the first offset of each partition
 * @param until the offset behind the last of each; null in real-time mode
 * @param clock what the clock shows to functions, in milliseconds since 1970; in real-time mode without meaning
 * @param tick the time of the clock up to which all is done behind the last record that is due; {@link Positions#NEVER}:
 *     nothing
 */
record ShareRange(
    String run, int share, Map<TopicPartition, Long> from, Map<TopicPartition, Long> until, long clock, long tick)
    implements InputPartition {
  private static final long serialVersionUID = 1L;
}
