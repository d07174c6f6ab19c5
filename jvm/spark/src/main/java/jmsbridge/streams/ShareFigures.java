package jmsbridge.streams;

import java.io.Serializable;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;

/**
 * Figures of a running share of a topology in one process.
 *
 * @param run id of the topology's run
 * @param share number of the share; -1 for the global tables, of which each process has a copy
 * @param batch number of the last batch that the process began
 * @param records records processed here
 * @param next next offset of each of the share's partitions: all records before were processed
 * @param stateBytes bytes of the state in local files and in memory
 * @param counts records that nodes did not process, by the node's name, a tab and the reason
 * @param gaps records that Kafka removed before they were read, as {@link Gaps#found}
 * @param due time of the clock at which a node has something to do, as of the last commit; the greatest: none
 * @param trouble what keeps the process waiting, in words; empty: nothing
 */
public record ShareFigures(
    String run, int share, long batch, long records, Map<TopicPartition, Long> next, long stateBytes,
    Map<String, Long> counts, Map<String, Long> gaps, long due, String trouble)
    implements Serializable {}
