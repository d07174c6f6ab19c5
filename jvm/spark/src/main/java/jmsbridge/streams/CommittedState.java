package jmsbridge.streams;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/** State of a topology as one of its batches left it, open for reading, whether the topology runs or not. */
public final class CommittedState {
  private final Program program;
  private final String folder;
  private final int shares;
  private final long version;
  private final Map<Integer, Integer> firstBatches;
  private final List<RocksStore> stores = new ArrayList<>();
  private final List<Task> tasks = new ArrayList<>();

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

  /** Rows of the state of a node, share after share. */
  public StateRows rows(String node, StateRange range) {
    return new StateRows(IntStream.range(0, shares).mapToObj(this::task).iterator(), node, range);
  }

  private Task task(int share) {
    while (tasks.size() <= share) {
      try {
        RocksStore store = new RocksStore(folder, tasks.size(), firstBatches.getOrDefault(tasks.size(), 0));
        stores.add(store);
        store.look(version);
        tasks.add(new Task(program.copy(), store, null, null, null));
      } catch (IOException failure) {
        throw new UncheckedIOException(failure);
      }
    }
    return tasks.get(share);
  }

  /** Closes the stores and removes their local files. */
  public void close() {
    tasks.forEach(Task::release);
    for (RocksStore each : stores) {
      each.rollBack();
      each.close();
    }
  }
}
