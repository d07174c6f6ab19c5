package jmsbridge.streams;

import java.io.File;
import java.lang.reflect.Field;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import jmsbridge.HadoopFiles;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.spark.sql.execution.streaming.state.LineageItem;
import org.apache.spark.sql.execution.streaming.state.RocksDB;
import org.apache.spark.sql.execution.streaming.state.RocksDBConf;
import org.apache.spark.sql.execution.streaming.state.RocksDBFileManager;
import org.apache.spark.sql.execution.streaming.state.StateStoreChangelogWriter;
import org.apache.spark.sql.execution.streaming.state.StateStoreConf;
import org.rocksdb.ReadOptions;
import org.rocksdb.RocksDBException;
import org.rocksdb.RocksIterator;
import org.rocksdb.Slice;
import org.rocksdb.WriteBatch;
import org.rocksdb.WriteOptions;
import scala.Option;

/** Spark's RocksDB with the checkpoint of a share, whose tables are links where that is possible. */
final class LinkedRocks extends RocksDB {
  /** Setting with the folder of copies of tables. The file manager is made before a field could have it. */
  private static final String KEPT = "jmsbridge.tables";
  /** Spark's field with the database of a version that is loaded. */
  private static final Field DATABASE = database();

  /** Writer of the changes since the version that is loaded. */
  private StateStoreChangelogWriter changelog;

  /** Creates it with local files in a folder, and copies of tables in another one; null: none are kept. */
  LinkedRocks(String checkpoint, int share, RocksDBConf settings, File local, Path kept) {
    super(checkpoint, settings, local, hadoop(kept), "share " + share, false, false, share, Option.empty(),
        Option.empty());
  }

  private static Configuration hadoop(Path kept) {
    Configuration settings = HadoopFiles.settings();
    if (kept != null) {
      settings.set(KEPT, kept.toString());
    }
    return settings;
  }

  /**
   * Entries from a key (included) to a key (excluded) in their order, the first {@code limit} of them. Spark's own scan
   * ends at a block that cannot be read as at the last entry; this one throws IllegalStateException.
   */
  List<Store.Entry> entries(byte[] from, byte[] to, int limit) {
    List<Store.Entry> found = new ArrayList<>();
    try (Slice end = new Slice(to);
        ReadOptions options = new ReadOptions().setIterateUpperBound(end);
        RocksIterator next = opened().newIterator(options)) {
      for (next.seek(from); found.size() < limit && next.isValid(); next.next()) {
        found.add(new Store.Entry(next.key(), next.value()));
      }
      next.status();
    } catch (RocksDBException failure) {
      throw new IllegalStateException(failure);
    }
    return found;
  }

  /** Writes entries at once, and notes them for the version that is committed next; one without a value is removed. */
  void write(List<Store.Entry> entries) {
    try (WriteBatch batch = new WriteBatch();
        WriteOptions options = new WriteOptions().setDisableWAL(true)) {
      for (Store.Entry each : entries) {
        if (each.value() == null) {
          batch.delete(each.key());
          changelog.delete(each.key());
        } else {
          batch.put(each.key(), each.value());
          changelog.put(each.key(), each.value());
        }
      }
      opened().write(options, batch);
    } catch (RocksDBException failure) {
      throw new IllegalStateException(failure);
    }
  }

  /** Number of entries as RocksDB estimates it, which counts one that was written again more than once. */
  long estimatedEntries() {
    try {
      return opened().getLongProperty("rocksdb.estimate-num-keys");
    } catch (RocksDBException failure) {
      throw new IllegalStateException(failure);
    }
  }

  private org.rocksdb.RocksDB opened() {
    try {
      return (org.rocksdb.RocksDB) DATABASE.get(this);
    } catch (IllegalAccessException failure) {
      throw new IllegalStateException(failure);
    }
  }

  private static Field database() {
    try {
      Field found = RocksDB.class.getDeclaredField("db");
      found.setAccessible(true);
      return found;
    } catch (NoSuchFieldException other) {
      throw new IllegalStateException("this version of Spark keeps RocksDB elsewhere", other);
    }
  }

  @Override
  public RocksDBFileManager createFileManager(
      String checkpoint, File local, Configuration hadoop, String codec, String label, StateStoreConf settings) {
    return new RocksDBFileManager(
        checkpoint, local, hadoop, codec, label, settings, conf().fileChecksumEnabled(), fileChecksumThreadPoolSize()) {
      @Override
      public FileSystem getFileSystem(String of, Configuration by) {
        String kept = by.get(KEPT);
        return new TableLinks(super.getFileSystem(of, by), kept == null ? null : Path.of(kept));
      }

      @Override
      public StateStoreChangelogWriter getChangeLogWriter(
          long version, boolean hasFamilies, Option<String> id, Option<LineageItem[]> lineage) {
        changelog = super.getChangeLogWriter(version, hasFamilies, id, lineage);
        return changelog;
      }
    };
  }
}
