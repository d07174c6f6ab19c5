package jmsbridge.cluster;

import java.io.Serializable;
import java.util.List;
import jmsbridge.figures.RowCounters;
import jmsbridge.figures.Vitals;
import jmsbridge.streams.ShareFigures;

/**
 * Figures of an executor.
 *
 * @param executor Spark's id of the executor
 * @param rows figures of the router's rows
 * @param underWay number of records that producers have neither confirmed nor given up
 * @param shares figures of topologies
 * @param vitals memory figures
 */
record Report(String executor, RowCounters.Report rows, long underWay, List<ShareFigures> shares, Vitals vitals)
    implements Serializable {}
