package jmsbridge.streams;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** State of a topology as one of its batches left it, open for reading, whether the topology runs or not. */
public final class CommittedState implements StateRows.Shares {
  private final Program program;
  private final String folder;
  private final int shares;
  private final long version;
  private final Map<Integer, Integer> firstBatches;
  private final List<RocksStore> stores = new ArrayList<>();
  private final Map<Integer, Task> tasks = new HashMap<>();

  /**
   * Opens the state; shares are read when they are needed.
   *
   * @param folder where the state is kept, as a URI of Hadoop
   * @param shares number of shares
   * @param version number of the batch after the last committed one
   * @param firstBatches number of the first batch of each share that came after the first batch of all
   */
  public CommittedState(
      Program program, String folder, int shares, long version, Map<Integer, Integer> firstBatches) {
    this.program = program;
    this.folder = folder;
    this.shares = shares;
    this.version = version;
    this.firstBatches = Map.copyOf(firstBatches);
  }

  /** Rows of the state of a node, share after share, from a place of {@link StateRows#place} on. */
  public StateRows rows(String node, StateRange range, String place) {
    return new StateRows(this, node, range, place);
  }

  @Override
  public int count() {
    return shares;
  }

  @Override
  public StatePage read(int share, StatePage.Question question) {
    return tasks.computeIfAbsent(share, this::task).state(question);
  }

  private Task task(int share) {
    try {
      RocksStore store = new RocksStore(folder, share, firstBatches.getOrDefault(share, 0), null);
      stores.add(store);
      store.look(version);
      return new Task(program.copy(), store);
    } catch (IOException failure) {
      throw new UncheckedIOException(failure);
    }
  }

  /** Closes the stores and removes their local files. */
  public void close() {
    tasks.values().forEach(Task::release);
    for (RocksStore store : stores) {
      store.rollBack();
      store.close();
    }
  }
}
