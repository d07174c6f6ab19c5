package jmsbridge.streams;

import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import jmsbridge.HadoopFiles;
import org.apache.spark.SparkEnv;
import org.apache.spark.SparkThrowable;
import org.apache.spark.sql.execution.streaming.state.RocksDBConf;
import org.apache.spark.sql.execution.streaming.state.RocksDBMetrics;
import org.apache.spark.sql.execution.streaming.state.StateStoreConf;
import org.apache.spark.sql.internal.SQLConf;
import org.rocksdb.RocksDBException;
import org.rocksdb.Status;
import scala.Option;

/**
 * Store in Spark's RocksDB of state stores: entries are on local disk, and each version's changes in a folder of the
 * checkpoint, from which any later task goes on.
 */
final class RocksStore implements Store {
  private static final String PREFIX = "spark.sql.streaming.stateStore.rocksdb.";
  private static final String COLUMNS = "default";
  /** Changes that a load may have to repeat, some tenths of a second: with more, a version is a whole copy. */
  private static final int MOST_CHANGES = 100_000;
  private static final String VERSIONS = "30";
  private static final String WRONG_SIZE = "CANNOT_LOAD_STATE_STORE.UNEXPECTED_FILE_SIZE";
  private static final String MEMORY = PREFIX + "maxMemoryUsageMB";
  private static final String MEMORY_MB = "256";
  private static final long MAINTENANCE_NANOS = TimeUnit.SECONDS.toNanos(30);

  private final LinkedRocks rocks;
  private final String place;
  /** Folder of copies of tables; null: none are kept. */
  private final Path kept;
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
   * @param tables local folder for copies of tables that the next run opens, with the checkpoint elsewhere; may be null
   */
  RocksStore(String folder, int share, long first, String tables) throws IOException {
    this(folder, share, first, tables, MOST_CHANGES);
  }

  /** Creates a store with another number of changes, with which a version is a whole copy. */
  RocksStore(String folder, int share, long first, String tables, int mostChanges) throws IOException {
    this.first = first;
    kept = tables == null ? null : Path.of(tables, Integer.toString(share));
    this.mostChanges = mostChanges;
    SQLConf settings = new SQLConf();
    // A version is written as the changes since the one before. Whole copies are made of some, as files that do not
    // change any more, and stored in the background; files that are stored already are not stored again.
    settings.setConfString(PREFIX + "changelogCheckpointing.enabled", "true");
    // Versions that are kept hold the files of their copies. A reader of the last commit needs its version for a while.
    settings.setConfString("spark.sql.streaming.minBatchesToRetain", VERSIONS);
    // Counting rows would read the former entry at each write.
    settings.setConfString(PREFIX + "trackTotalNumberOfRows", "false");
    // All stores of a process share one cache of blocks, which has the indexes of tables too, and the room for writes.
    settings.setConfString(PREFIX + "boundedMemoryUsage", "true");
    settings.setConfString(MEMORY, memory());
    settings.setConfString(PREFIX + "writeBufferCacheRatio", "0.25");
    local = Files.createTempDirectory("jmsbridge-state").toFile();
    place = folder + "/" + share;
    rocks = new LinkedRocks(place, share, RocksDBConf.apply(StateStoreConf.apply(settings)), local, kept);
  }

  /** Megabytes for all stores of this process, from Spark's settings in the driver and in executors. */
  private static String memory() {
    SparkEnv spark = SparkEnv.get();
    return spark == null ? MEMORY_MB : spark.conf().get(MEMORY, MEMORY_MB);
  }

  /** Loads the version before a batch; the one before the first batch of the share is the empty store. */
  void load(long batch) {
    open(batch - first, false);
    isStored |= batch > first;
  }

  /** Loads the version before a batch to read it, beside a task that may work with a later one. */
  void look(long batch) {
    open(Math.max(batch - first, 0), true);
  }

  private void open(long version, boolean isRead) {
    undamaged(() -> rocks.load(version, Option.empty(), isRead, false));
  }

  /** What a call gives; DamagedStateException if files are gone, cut short, or not as they were written. */
  private <T> T undamaged(Supplier<T> call) {
    try {
      return call.get();
    } catch (Exception failure) {
      // Scala's methods throw checked exceptions, too.
      for (Throwable each = failure; each != null; each = each.getCause()) {
        if (isDamage(each)) {
          throw new DamagedStateException("%s: %s".formatted(place, each.getMessage()));
        }
      }
      throw failure;
    }
  }

  private static boolean isDamage(Throwable failure) {
    if (failure instanceof RocksDBException of) {
      return of.getStatus() != null && of.getStatus().getCode() == Status.Code.Corruption;
    }
    return failure instanceof FileNotFoundException
        || failure instanceof SparkThrowable known && WRONG_SIZE.equals(known.getCondition());
  }

  /** Bytes of the tables that are loaded: so much memory their entries take at least. */
  long tableBytes() {
    long bytes = 0;
    for (File folder : Objects.requireNonNull(local.listFiles(File::isDirectory))) {
      for (File table : Objects.requireNonNull(folder.listFiles((any, name) -> name.endsWith(".sst")))) {
        bytes += table.length();
      }
    }
    return bytes;
  }

  /** Number of entries, about; with those twice that were written again lately. */
  long estimatedEntries() {
    return rocks.estimatedEntries();
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
      if (kept != null && Files.exists(kept)) {
        TableLinks.retain(kept, tables());
      }
    }
  }

  /** Names of the tables in the checkpoint, which may have none yet. */
  private Set<String> tables() {
    try {
      return Set.copyOf(new HadoopFiles(place).names(place + "/SSTs"));
    } catch (FileNotFoundException none) {
      return Set.of();
    } catch (IOException failure) {
      throw new UncheckedIOException(failure);
    }
  }

  void close() {
    rocks.close();
    org.apache.spark.util.Utils.deleteRecursively(local);
  }

  @Override
  public byte[] get(byte[] key) {
    return undamaged(() -> rocks.get(key, COLUMNS));
  }

  /** Writes entries, each under another key; one without a value is removed. */
  void write(List<Entry> entries) {
    changes += entries.size();
    rocks.write(entries);
  }

  @Override
  public List<Entry> range(byte[] from, byte[] to, int limit) {
    return undamaged(() -> rocks.entries(from, to, limit));
  }
}
