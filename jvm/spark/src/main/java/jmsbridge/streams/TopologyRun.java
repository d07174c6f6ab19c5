package jmsbridge.streams;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.common.TopicPartition;

/** Runs of topologies in this JVM, each under an id, which is the option {@code run} of its source and its sink. */
public final class TopologyRun {
  private static final Map<String, RunSettings> ALL = new ConcurrentHashMap<>();
  private static final Map<String, Lag> LAGS = new ConcurrentHashMap<>();
  /** Figures of topologies in executors, also in those that have ended, by Spark's id of the executor. */
  private static final Map<String, List<ShareFigures>> REPORTED = new ConcurrentHashMap<>();
  /** Runs that have committed since they were told to finish. */
  private static final Set<String> FINISHED = ConcurrentHashMap.newKeySet();
  private static volatile Set<String> finishing = Set.of();

  private TopologyRun() {}

  public static void open(String run, RunSettings settings) {
    ALL.put(run, settings);
  }

  /** Has a run take no more records: no further batch begins, and real-time mode ends its interval. */
  public static void finish(String run) {
    finishing = Stream.concat(finishing.stream(), Stream.of(run)).collect(Collectors.toUnmodifiableSet());
  }

  /** True if a run in real-time mode has committed its state since {@link #finish}. */
  public static boolean hasFinished(String run) {
    return FINISHED.contains(run);
  }

  /** Ends a run, whose query has ended. */
  public static void close(String run) {
    ALL.remove(run);
    FINISHED.remove(run);
    finishing = finishing.stream().filter(each -> !each.equals(run)).collect(Collectors.toUnmodifiableSet());
    Lag lag = LAGS.remove(run);
    if (lag != null) {
      lag.close();
    }
    RunningShare.closeAll(run);
  }

  /** The runs that are to take no more records. */
  public static Set<String> finishing() {
    return finishing;
  }

  /** Takes over which runs are to take no more records, in an executor. */
  public static void finishing(Set<String> runs) {
    finishing = runs;
  }

  static boolean isFinishing(String run) {
    return finishing.contains(run);
  }

  static void committed(String run) {
    if (isFinishing(run)) {
      FINISHED.add(run);
    }
  }

  static RunSettings settings(String run) {
    return ALL.get(run);
  }

  /** Id and settings of the run of a topology; null if none is under way. */
  static Map.Entry<String, RunSettings> of(String topology) {
    return ALL.entrySet().stream().filter(each -> each.getValue().program().name().equals(topology)).findFirst()
        .orElse(null);
  }

  /** Offset of the next record of each partition. */
  static Map<TopicPartition, Long> next(String run) {
    Map<TopicPartition, Long> next = new HashMap<>();
    newest(run).forEach(share -> next.putAll(share.next()));
    return next;
  }

  /** Records processed since the run began. */
  public static long records(String run) {
    return shares(run).mapToLong(ShareFigures::records).sum();
  }

  /** Records of the topology's topics that are not processed yet. */
  public static long lag(String run) {
    return LAGS.computeIfAbsent(run, any -> new Lag(settings(run).consumer())).behind(next(run));
  }

  /** The time of the clock at which a node has something to do; the greatest: none. The least if it is not known yet. */
  static long due(String run) {
    List<ShareFigures> known = newest(run).filter(share -> share.share() >= 0).toList();
    boolean isKnown = known.size() >= settings(run).shares();
    return isKnown ? known.stream().mapToLong(ShareFigures::due).min().orElse(Long.MAX_VALUE) : Long.MIN_VALUE;
  }

  /** What keeps a share waiting, in words; empty: nothing. */
  public static String trouble(String run) {
    return newest(run).map(ShareFigures::trouble).filter(each -> !each.isEmpty()).findFirst().orElse("");
  }

  /** Bytes of the state of all shares in local files and in memory, as of their last commits. */
  public static long stateBytes(String run) {
    return newest(run).mapToLong(ShareFigures::stateBytes).sum();
  }

  /** Records that nodes did not process, each number under the node's name, a tab and the reason. */
  public static Map<String, Long> counts(String run) {
    Map<String, Long> counts = new HashMap<>();
    // Each process has a copy of the global tables.
    Stream.concat(shares(run).filter(each -> each.share() >= 0), newest(run).filter(each -> each.share() < 0))
        .forEach(share -> share.counts().forEach((event, count) -> counts.merge(event, count, Long::sum)));
    return counts;
  }

  /**
   * Records that Kafka removed before they were read: topic, partition and first missing offset, each after a tab, and the
   * offset behind the last one.
   */
  public static Map<String, Long> gaps(String run) {
    Map<String, Long> gaps = new HashMap<>();
    shares(run).forEach(share -> share.gaps().forEach((from, to) -> gaps.merge(from, to, Math::max)));
    return gaps;
  }

  /** Copies state into the checkpoint and removes what is not needed any more; to be called now and then. */
  public static void maintain() {
    RunningShare.maintainAll();
  }

  /** The figures of all shares in this process, for the driver. */
  public static List<ShareFigures> figures() {
    return RunningShare.figures();
  }

  /** Takes over the figures of all shares in an executor, in the driver. */
  public static void report(String executor, List<ShareFigures> shares) {
    REPORTED.put(executor, shares);
  }

  private static Stream<ShareFigures> shares(String run) {
    return Stream.concat(RunningShare.figures().stream(), REPORTED.values().stream().flatMap(List::stream))
        .filter(share -> share.run().equals(run));
  }

  /** The figures of each share in the process that has processed it last. */
  private static Stream<ShareFigures> newest(String run) {
    Map<Integer, ShareFigures> newest = new HashMap<>();
    shares(run).forEach(share -> newest.merge(
        share.share(), share, (one, other) -> one.batch() < other.batch() ? other : one));
    return newest.values().stream();
  }
}
