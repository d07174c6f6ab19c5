package jmsbridge.streams;

import java.io.Serializable;
import java.util.Collection;
import java.util.List;
import java.util.Set;

/**
 * What a topology needs of the order in which its topics are read, where nodes that depend on the order of times are
 * behind internal topics.
 *
 * <p>An internal topic is in the order in which its writers reach Kafka. Records of the topics that feed one wait while
 * they are so much later than those of other shares that a reader would take the latter for late ones.
 */
public final class ReadOrder implements Serializable {
  private static final long serialVersionUID = 1L;

  /** Times at which a node takes no more records of before: multiples of a step and a phase, and so much later. */
  private record Bound(long every, long phase, long slack) implements Serializable {
    private static final long serialVersionUID = 1L;

    long after(long time) {
      long boundary = every == 0 ? time : time - Math.floorMod(time - phase, every) + every;
      long latest = boundary + slack;
      return latest < time ? Long.MAX_VALUE : latest;
    }
  }

  private final Set<String> feeders;
  private final Set<String> followers;
  private final List<Bound> bounds;
  private final boolean isOneProcess;

  /**
   * Creates an order.
   *
   * @param feeders topics whose records are written to internal topics which such nodes read
   * @param followers topics, not internal ones, that such a node reads beside an internal topic
   * @param bounds three numbers of milliseconds for each node: step and phase of the times at which it closes windows,
   *     or 0, and the time for which it takes late records after them
   * @param isOneProcess whether all shares run in one JVM, so that they can wait for one another
   */
  public ReadOrder(
      Collection<String> feeders, Collection<String> followers, Collection<? extends List<? extends Number>> bounds,
      boolean isOneProcess) {
    this.feeders = Set.copyOf(feeders);
    this.followers = Set.copyOf(followers);
    this.bounds = bounds.stream()
        .map(each -> new Bound(each.get(0).longValue(), each.get(1).longValue(), each.get(2).longValue())).toList();
    this.isOneProcess = isOneProcess;
  }

  /** An order that needs nothing. */
  static ReadOrder none() {
    return new ReadOrder(List.of(), List.of(), List.of(), false);
  }

  boolean isFeeder(String topic) {
    return feeders.contains(topic);
  }

  boolean isFollower(String topic) {
    return followers.contains(topic);
  }

  /** Whether a topic waits in batches for those that feed the internal topic; one that feeds it itself cannot. */
  boolean isDelayed(String topic) {
    return isFollower(topic) && !isFeeder(topic);
  }

  boolean hasFollowers() {
    return !followers.isEmpty();
  }

  boolean isOneProcess() {
    return isOneProcess;
  }

  /** The latest time of a record that makes none late whose time is at least {@code time}. */
  long limit(long time) {
    if (time == Long.MIN_VALUE || time == Long.MAX_VALUE) {
      return time;
    }
    return bounds.stream().mapToLong(each -> each.after(time)).min().orElse(Long.MAX_VALUE);
  }
}
