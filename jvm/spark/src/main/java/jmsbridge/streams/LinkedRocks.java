package jmsbridge.streams;

import java.io.File;
import java.nio.file.Path;
import jmsbridge.HadoopFiles;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.spark.sql.execution.streaming.state.RocksDB;
import org.apache.spark.sql.execution.streaming.state.RocksDBConf;
import org.apache.spark.sql.execution.streaming.state.RocksDBFileManager;
import org.apache.spark.sql.execution.streaming.state.StateStoreConf;
import scala.Option;

/** Spark's RocksDB with the checkpoint of a share, whose tables are links where that is possible. */
final class LinkedRocks extends RocksDB {
  /** Setting with the folder of copies of tables. The file manager is made before a field could have it. */
  private static final String KEPT = "jmsbridge.tables";

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
