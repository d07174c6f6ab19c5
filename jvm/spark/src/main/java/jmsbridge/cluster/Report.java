package jmsbridge.cluster;

import java.io.Serializable;
import java.util.List;
import jmsbridge.RowCounters;
import jmsbridge.Vitals;
import jmsbridge.streams.ShareFigures;

/**
 * Figures of an executor.
 *
 * @param executor Spark's id of the executor
 * @param query number of the query that {@code figures} are of
 * @param figures as JSON
 * @param notes about failed messages since the report before
 * @param counted highest counted offset by journal partition, -1 for none
 * @param underWay number of records that producers have neither confirmed nor given up
 * @param shares figures of topologies
 * @param vitals memory figures
 */
public record Report(
    String executor, long query, String figures, List<RowCounters.Note> notes, long[] counted, long underWay,
    List<ShareFigures> shares, Vitals vitals) implements Serializable {}
