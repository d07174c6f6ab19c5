package jmsbridge.streams;

import java.io.File;
import java.lang.reflect.Field;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import jmsbridge.HadoopFiles;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.spark.sql.execution.streaming.state.RocksDB;
import org.apache.spark.sql.execution.streaming.state.RocksDBConf;
import org.apache.spark.sql.execution.streaming.state.RocksDBFileManager;
import org.apache.spark.sql.execution.streaming.state.StateStoreConf;
import org.rocksdb.ReadOptions;
import org.rocksdb.RocksDBException;
import org.rocksdb.RocksIterator;
import org.rocksdb.Slice;
import scala.Option;

/** Spark's RocksDB with the checkpoint of a share, whose tables are links where that is possible. */
final class LinkedRocks extends RocksDB {
  /** Setting with the folder of copies of tables. The file manager is made before a field could have it. */
  private static final String KEPT = "jmsbridge.tables";
  /** Spark's field with the database of a version that is loaded. */
  private static final Field DATABASE = database();

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
        RocksIterator next = ((org.rocksdb.RocksDB) DATABASE.get(this)).newIterator(options)) {
      for (next.seek(from); found.size() < limit && next.isValid(); next.next()) {
        found.add(new Store.Entry(next.key(), next.value()));
      }
      next.status();
    } catch (RocksDBException | IllegalAccessException failure) {
      throw new IllegalStateException(failure);
    }
    return found;
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
    };
  }
}
