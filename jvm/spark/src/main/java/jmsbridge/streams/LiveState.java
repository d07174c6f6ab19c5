package jmsbridge.streams;

import java.util.HashMap;
import java.util.Map;

/** State of a topology that runs, with all that its shares have processed so far; for any number of questions. */
public final class LiveState implements StateRows.Shares {
  private final String run;
  private final int shares;

  /** Opens the state of the run of a topology with this name; IllegalStateException if none is under way. */
  public LiveState(String topology) {
    Map.Entry<String, RunSettings> found = TopologyRun.of(topology);
    if (found == null) {
      throw new IllegalStateException("the topology has no run under way");
    }
    run = found.getKey();
    shares = found.getValue().shares();
  }

  /**
   * Rows of the state of a node, share after share, from a place of {@link StateRows#place} on. Taking them throws
   * IllegalStateException while a share cannot be read.
   */
  public StateRows rows(String node, StateRange range, String place) {
    return new StateRows(this, node, range, place);
  }

  /** Offset of the next record of each partition, under topic and partition with a tab between them. */
  public Map<String, Long> positions() {
    Map<String, Long> positions = new HashMap<>();
    TopologyRun.next(run).forEach((at, offset) -> positions.put(at.topic() + "\t" + at.partition(), offset));
    return positions;
  }

  @Override
  public int count() {
    return shares;
  }

  @Override
  public StatePage read(int share, StatePage.Question question) {
    return RunningShare.read(run, share, question);
  }

  public void close() {
    // Shares keep what reading needs until they end.
  }
}
