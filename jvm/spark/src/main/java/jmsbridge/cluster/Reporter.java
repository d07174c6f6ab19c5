package jmsbridge.cluster;

import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import jmsbridge.figures.RowCounters;
import jmsbridge.figures.Sends;
import jmsbridge.figures.Vitals;
import jmsbridge.streams.TopologyRun;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;

/**
 * Executor's side: reports figures twice a second, and holds the lease that the driver grants with each answer.
 *
 * <p>Without an answer for the time of a lease the process ends: the driver may have started the query elsewhere, and
 * producers of this process would still send what is in their buffers.
 */
final class Reporter implements ExecutorPlugin {
  private static final long REPORT_MS = 500;
  private static final long CHECK_MS = 50;
  private static final long REPORTS_BETWEEN_MAINTENANCE = 60;

  private PluginContext context;
  private volatile long leaseEnd;
  private volatile boolean isEnding;

  @Override
  public void init(PluginContext context, Map<String, String> settings) {
    this.context = context;
    // Before the first task: without a lease nothing is published.
    leaseEnd = System.nanoTime();
    Sends.until(leaseEnd);
    report();
    start("jms-bridge report", this::reportAgain);
    start("jms-bridge lease", this::watch);
  }

  @Override
  public void shutdown() {
    isEnding = true;
  }

  /** Reports once; without an answer the lease stays as it is. */
  private void report() {
    long asked = System.nanoTime();
    try {
      Map.Entry<Long, Set<String>> answer = ask();
      leaseEnd = asked + answer.getKey();
      Sends.until(leaseEnd);
      TopologyRun.finishing(answer.getValue());
    } catch (Exception failure) {
      System.err.println("the driver does not answer: " + failure);
    }
  }

  @SuppressWarnings("unchecked")
  private Map.Entry<Long, Set<String>> ask() throws Exception {
    return (Map.Entry<Long, Set<String>>) context.ask(new Report(
        context.executorID(), RowCounters.report(), Sends.underWay(), TopologyRun.figures(), Vitals.now()));
  }

  private void reportAgain() {
    for (long reports = 1; !isEnding; reports++) {
      pause(REPORT_MS);
      if (reports % REPORTS_BETWEEN_MAINTENANCE == 0) {
        TopologyRun.maintain();
      }
      report();
    }
  }

  private void watch() {
    while (!isEnding) {
      if (System.nanoTime() - leaseEnd > 0) {
        System.err.println("the driver has not answered for the time of a lease: this process ends, and publishes nothing");
        Runtime.getRuntime().halt(1);
      }
      pause(CHECK_MS);
    }
  }

  private static void pause(long milliseconds) {
    try {
      TimeUnit.MILLISECONDS.sleep(milliseconds);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  private static void start(String name, Runnable work) {
    Thread thread = new Thread(work, name);
    thread.setDaemon(true);
    thread.start();
  }
}
