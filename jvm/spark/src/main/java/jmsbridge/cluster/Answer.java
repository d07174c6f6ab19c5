package jmsbridge.cluster;

import java.io.Serializable;
import java.util.Set;

/** Answer of the driver to a report: for how long the executor may publish, and which topologies take no more records. */
record Answer(long leaseNanos, Set<String> finishing) implements Serializable {}
