package jmsbridge.streams;

import java.util.Map;
import org.apache.kafka.common.TopicPartition;
import org.apache.spark.sql.connector.read.InputPartition;

/**
 * What a task reads: partition {@code share} of every topic.
 *
 * @param from the first offset of each partition
 * @param until the offset behind the last of each; null in real-time mode
 */
record ShareRange(String run, int share, Map<TopicPartition, Long> from, Map<TopicPartition, Long> until)
    implements InputPartition {
  private static final long serialVersionUID = 1L;
}
