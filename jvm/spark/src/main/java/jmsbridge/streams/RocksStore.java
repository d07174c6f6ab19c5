package jmsbridge.streams;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import jmsbridge.HadoopFiles;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskContext$;
import org.apache.spark.sql.execution.streaming.state.ByteArrayPair;
import org.apache.spark.sql.execution.streaming.state.RocksDB;
import org.apache.spark.sql.execution.streaming.state.RocksDBConf;
import org.apache.spark.sql.execution.streaming.state.RocksDBMetrics;
import org.apache.spark.sql.execution.streaming.state.StateStoreConf;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.util.NextIterator;
import scala.Option;
import scala.Some;

/**
 * Store in Spark's RocksDB of state stores: entries are on local disk, and each version's changes in a folder of the
 * checkpoint, from which any later task goes on.
 */
final class RocksStore implements Store {
  private static final String PREFIX = "spark.sql.streaming.stateStore.rocksdb.";
  private static final String COLUMNS = "default";
  /** Changes that a load may have to repeat, about a second's work: with more, a version is a whole copy. */
  private static final int MOST_CHANGES = 250_000;
  private static final String VERSIONS = "30";
  private static final long MAINTENANCE_NANOS = TimeUnit.SECONDS.toNanos(30);

  private final RocksDB rocks;
  private final File local;
  private final long first;
  private final int mostChanges;
  /** Changes since the last version that is a whole copy. */
  private int changes;
  /** Whether the folder in the checkpoint is there: the first commit makes it. */
  private volatile boolean isStored;
  /** Whether a whole copy waits to be stored in the checkpoint. */
  private volatile boolean hasCopy;
  private long maintainedAt = System.nanoTime();

  /**
   * Creates the store of a share.
   *
   * @param first number of the first batch that had this share, which is its version 0
   */
  RocksStore(String folder, int share, long first) throws IOException {
    this(folder, share, first, MOST_CHANGES);
  }

  /** Creates a store with another number of changes, with which a version is a whole copy. */
  RocksStore(String folder, int share, long first, int mostChanges) throws IOException {
    this.first = first;
    this.mostChanges = mostChanges;
    SQLConf settings = new SQLConf();
    // A version is written as the changes since the one before. Whole copies are made of some, as files that do not
    // change any more, and stored in the background; files that are stored already are not stored again.
    settings.setConfString(PREFIX + "changelogCheckpointing.enabled", "true");
    // Versions that are kept hold the files of their copies. A reader of the last commit needs its version for a while.
    settings.setConfString("spark.sql.streaming.minBatchesToRetain", VERSIONS);
    // Counting rows would read the former entry at each write.
    settings.setConfString(PREFIX + "trackTotalNumberOfRows", "false");
    local = Files.createTempDirectory("jmsbridge-state").toFile();
    rocks = new RocksDB(folder + "/" + share, RocksDBConf.apply(StateStoreConf.apply(settings)), local,
        HadoopFiles.settings(), "share " + share, false, false, share, Option.empty(), Option.empty());
  }

  /** Loads the version before a batch; the one before the first batch of the share is the empty store. */
  void load(long batch) {
    rocks.load(batch - first, Option.empty(), false, false);
    isStored |= batch > first;
  }

  /** Loads the version before a batch to read it, beside a task that may work with a later one. */
  void look(long batch) {
    rocks.load(Math.max(batch - first, 0), Option.empty(), true, false);
  }

  /** Makes the changes since the load a version, the next number. */
  void commit() {
    boolean isCopy = changes >= mostChanges;
    rocks.commit(isCopy);
    isStored = true;
    if (isCopy) {
      changes = 0;
      hasCopy = true;
    }
  }

  /** Bytes of the state in files and in memory, as of the last commit; for the task's own thread. */
  long bytes() {
    Option<RocksDBMetrics> metrics = rocks.metricsOpt();
    return metrics.isEmpty() ? 0 : metrics.get().totalSSTFilesBytes() + metrics.get().totalMemUsageBytes();
  }

  void rollBack() {
    rocks.rollback();
  }

  /** Stores a whole copy in the checkpoint and removes versions that are not needed any more, if it is time for that. */
  void maintain() {
    long now = System.nanoTime();
    if (hasCopy || isStored && now - maintainedAt > MAINTENANCE_NANOS) {
      hasCopy = false;
      maintainedAt = now;
      rocks.doMaintenance();
    }
  }

  void close() {
    rocks.close();
    org.apache.spark.util.Utils.deleteRecursively(local);
  }

  @Override
  public byte[] get(byte[] key) {
    return rocks.get(key, COLUMNS);
  }

  @Override
  public void put(byte[] key, byte[] value) {
    changes++;
    rocks.put(key, value, COLUMNS, false, false, false);
  }

  @Override
  public void remove(byte[] key) {
    changes++;
    rocks.remove(key, COLUMNS, false, false, false);
  }

  @Override
  public List<Entry> range(byte[] from, byte[] to, int limit) {
    List<Entry> found = new ArrayList<>();
    NextIterator<ByteArrayPair> entries = scan(from, to);
    try {
      while (found.size() < limit && entries.hasNext()) {
        ByteArrayPair each = entries.next();
        found.add(new Entry(each.key(), each.value()));
      }
    } finally {
      entries.closeIfNeeded();
    }
    return found;
  }

  private NextIterator<ByteArrayPair> scan(byte[] from, byte[] to) {
    // With a context each scan would stay in memory until the end of the task, which may be minutes away.
    TaskContext context = TaskContext.get();
    TaskContext$.MODULE$.unset();
    try {
      return rocks.rangeScan(new Some<>(from), new Some<>(to), COLUMNS);
    } finally {
      if (context != null) {
        TaskContext$.MODULE$.setTaskContext(context);
      }
    }
  }
}
