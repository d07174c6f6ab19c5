package jmsbridge.cluster;

import java.util.AbstractMap.SimpleImmutableEntry;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import jmsbridge.RowCounters;
import jmsbridge.Sends;
import jmsbridge.Vitals;
import jmsbridge.streams.ShareFigures;
import jmsbridge.streams.TopologyRun;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.DriverPlugin;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Driver's side: the last report of each executor, and the lease that it holds.
 *
 * <p>An executor publishes only while its lease lasts. So the driver knows from its own clock when an executor that does
 * not report any more, because it is dead, frozen or cut off, has published its last record. State is static for the
 * reason given at {@link RowCounters}.
 */
public final class Executors implements DriverPlugin {
  /** Length of a lease, which an executor counts from its request and the driver from its answer. */
  static final long LEASE_NANOS = TimeUnit.SECONDS.toNanos(6);
  /** Time for which an executor may still be ending after its lease. */
  private static final long MARGIN_NANOS = TimeUnit.SECONDS.toNanos(1);
  /** Reports after which the first of them was certainly made after the last change. */
  private static final int FRESH = 2;

  private static final Map<String, Executor> KNOWN = new ConcurrentHashMap<>();

  private static final class Executor {
    Report last;
    int reports;
    long leaseEnd;

    boolean mayPublish() {
      return System.nanoTime() - leaseEnd < MARGIN_NANOS;
    }
  }

  /**
   * Answers a report with the nanoseconds for which the executor may publish, and the topologies that are to take no
   * more records. Spark's thread for messages does not know the project's classes in an executor, but Java's own.
   */
  @Override
  public Object receive(Object message) {
    Report report = (Report) message;
    long nanos = Math.min(LEASE_NANOS, Sends.remainingNanos());
    Executor executor = KNOWN.computeIfAbsent(report.executor(), any -> new Executor());
    synchronized (executor) {
      executor.last = report;
      executor.reports++;
      executor.leaseEnd = System.nanoTime() + nanos;
    }
    RowCounters.merge(report.counted(), report.notes());
    return new SimpleImmutableEntry<>(nanos, TopologyRun.finishing());
  }

  /** The executors that Spark has and that have reported, one a line: Spark's id, number of task slots, {@link Vitals}. */
  public static String living(SparkContext context) {
    return CollectionConverters.asJava(context.statusStore().executorList(true)).stream()
        .filter(each -> KNOWN.containsKey(each.id()))
        .map(each -> each.id() + " " + each.totalCores() + " " + vitals(KNOWN.get(each.id())))
        .collect(Collectors.joining("\n"));
  }

  private static Vitals vitals(Executor executor) {
    synchronized (executor) {
      return executor.last.vitals();
    }
  }

  /** The figures of the executors for a query, as of their last reports. */
  public static List<String> figures(long query) {
    List<String> figures = new ArrayList<>();
    KNOWN.values().forEach(executor -> {
      synchronized (executor) {
        if (executor.last.query() == query) {
          figures.add(executor.last.figures());
        }
      }
    });
    return figures;
  }

  /** The figures of topologies in all executors, also in those that have ended. */
  public static List<ShareFigures> shares() {
    List<ShareFigures> shares = new ArrayList<>();
    KNOWN.values().forEach(executor -> {
      synchronized (executor) {
        shares.addAll(executor.last.shares());
      }
    });
    return shares;
  }

  /** Makes {@link #underWay} wait for reports that are made from now on. To be called when no task runs any more. */
  public static void refresh() {
    KNOWN.values().forEach(executor -> {
      synchronized (executor) {
        executor.reports = 0;
      }
    });
  }

  /**
   * Number of records that producers of executors have neither confirmed nor given up. An executor that has not
   * reported since {@link #refresh} counts as one, until its lease has ended.
   */
  public static long underWay() {
    long sum = 0;
    for (Executor executor : KNOWN.values()) {
      synchronized (executor) {
        if (executor.mayPublish()) {
          sum += executor.reports < FRESH ? 1 : executor.last.underWay();
        }
      }
    }
    return sum;
  }

  /** Seconds after the driver's last answer in which an executor may still publish, its end included. */
  public static double leaseSeconds() {
    return (LEASE_NANOS + MARGIN_NANOS) / 1e9;
  }

  /** True if each executor that has worked for the query has reported since {@link #refresh}. */
  public static boolean haveReported(long query) {
    return KNOWN.values().stream().allMatch(executor -> {
      synchronized (executor) {
        return executor.last.query() != query || executor.reports >= FRESH;
      }
    });
  }

  /** Id of an executor that has worked for the query and may not publish any more; null if there is none. */
  public static String silent(long query) {
    for (Map.Entry<String, Executor> each : KNOWN.entrySet()) {
      Executor executor = each.getValue();
      synchronized (executor) {
        if (executor.last.query() == query && !executor.mayPublish()) {
          return each.getKey();
        }
      }
    }
    return null;
  }
}
