package jmsbridge.cluster;

import java.util.AbstractMap.SimpleImmutableEntry;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import jmsbridge.figures.RowCounters;
import jmsbridge.figures.Sends;
import jmsbridge.figures.Vitals;
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
    long leaseEnd = System.nanoTime();

    Executor(Report first) {
      last = first;
    }

    boolean hasWorkedFor(long query) {
      return last.rows().query() == query;
    }

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
    Executor executor = KNOWN.computeIfAbsent(report.executor(), any -> new Executor(report));
    synchronized (executor) {
      executor.last = report;
      executor.reports++;
      executor.leaseEnd = System.nanoTime() + nanos;
    }
    RowCounters.merge(report.rows());
    TopologyRun.report(report.executor(), report.shares());
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

  /**
   * The figures of rows as a JSON array: those of this process and, as of their last reports, those of the executors that
   * have worked for the query. Each note comes once.
   */
  public static String read() {
    List<String> figures = new ArrayList<>(List.of(RowCounters.read()));
    long query = RowCounters.query().number();
    KNOWN.values().forEach(executor -> {
      synchronized (executor) {
        if (executor.hasWorkedFor(query)) {
          figures.add(executor.last.rows().figures());
        }
      }
    });
    return figures.toString();
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
   * Number of records, of earlier queries too, that producers have neither confirmed nor given up. An executor that has
   * not reported since {@link #refresh} counts as one, until its lease has ended.
   */
  public static long underWay() {
    long sum = Sends.underWay();
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
  public static boolean haveReported() {
    long query = RowCounters.query().number();
    return KNOWN.values().stream().allMatch(executor -> {
      synchronized (executor) {
        return !executor.hasWorkedFor(query) || executor.reports >= FRESH;
      }
    });
  }

  /** Id of an executor that has worked for the query and may not publish any more; null if there is none. */
  public static String silent() {
    long query = RowCounters.query().number();
    for (Map.Entry<String, Executor> entry : KNOWN.entrySet()) {
      Executor executor = entry.getValue();
      synchronized (executor) {
        if (executor.hasWorkedFor(query) && !executor.mayPublish()) {
          return entry.getKey();
        }
      }
    }
    return null;
  }
}
