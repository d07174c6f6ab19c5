package jmsbridge.streams;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Runs of topologies in this JVM, each under an id, which is the option {@code run} of its source and its sink. */
public final class TopologyRun {
  private static final Map<String, RunSettings> ALL = new ConcurrentHashMap<>();

  private TopologyRun() {}

  public static void open(String run, RunSettings settings) {
    ALL.put(run, settings);
  }

  /** Ends a run, whose query has ended. */
  public static void close(String run) {
    ALL.remove(run);
    RunningShare.closeAll(run);
  }

  static RunSettings settings(String run) {
    return ALL.get(run);
  }

  /** Records processed since the run began. */
  public static long records(String run) {
    return RunningShare.records(run);
  }

  /** Records of the topology's topics that are not processed yet, as of Kafka's last answers. */
  public static long lag(String run) {
    return RunningShare.lag(run);
  }

  /** Bytes of the state of all shares in local files and in memory, as of their last commits. */
  public static long stateBytes(String run) {
    return RunningShare.stateBytes(run);
  }

  /** Records that nodes did not process, each number under the node's name, a tab and the reason. */
  public static Map<String, Long> counts(String run) {
    Map<String, Long> counts = new HashMap<>();
    RunningShare.addCounts(run, counts);
    return counts;
  }

  /** Copies state into the checkpoint and removes what is not needed any more; to be called now and then. */
  public static void maintain(String run) {
    RunningShare.maintainAll(run);
  }
}
