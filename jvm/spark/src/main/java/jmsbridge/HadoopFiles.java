package jmsbridge;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.StreamCapabilities;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.deploy.SparkHadoopUtil;

/** The bridge's files on a file system of Hadoop: of a checkpoint, and bodies. Each appears as a whole or not at all. */
public final class HadoopFiles {
  private static final String IF_ABSENT = Options.CreateFileOptionKeys.FS_OPTION_CREATE_CONDITIONAL_OVERWRITE;
  private static final FsPermission FOLDER = new FsPermission("700");
  private static final FsPermission FILE = new FsPermission("600");

  private final FileSystem files;

  /** Opens the file system of a URI, with the settings {@code spark.hadoop.*} of this JVM's session. */
  public HadoopFiles(String uri) throws IOException {
    files = FileSystem.get(URI.create(uri), settings());
  }

  /** Hadoop's settings of the session, in the driver and in executors; without a session those of the properties. */
  public static Configuration settings() {
    SparkEnv spark = SparkEnv.get();
    return SparkHadoopUtil.get().newConfiguration(spark == null ? new SparkConf() : spark.conf());
  }

  /** Names of what is in a folder; FileNotFoundException without the folder. */
  public List<String> names(String folder) throws IOException {
    List<String> names = new ArrayList<>();
    for (FileStatus file : files.listStatus(new Path(folder))) {
      names.add(file.getPath().getName());
    }
    return names;
  }

  public boolean exists(String path) throws IOException {
    return files.exists(new Path(path));
  }

  /** Bytes of a file; -1 without it. */
  long size(String path) throws IOException {
    try {
      return files.getFileStatus(new Path(path)).getLen();
    } catch (FileNotFoundException none) {
      return -1;
    }
  }

  /** The content of a file; FileNotFoundException without it. */
  public byte[] read(String path) throws IOException {
    try (FSDataInputStream in = files.open(new Path(path))) {
      return in.readAllBytes();
    }
  }

  /** Makes a folder with one file; FileAlreadyExistsException if there is one of this name. */
  public void makeFolder(String folder, String name, byte[] content) throws IOException {
    Path file = new Path(folder, name);
    if (files.hasPathCapability(file, IF_ABSENT)) {
      // An object store, where a file appears when it is closed, and to rename a folder is to copy it.
      FSDataOutputStreamBuilder<?, ?> builder = files.createFile(file);
      builder.recursive();
      builder.must(IF_ABSENT, true);
      write(builder.build(), content);
    } else {
      Path draft = draft(new Path(folder));
      files.mkdirs(draft, FOLDER);
      write(FileSystem.create(files, new Path(draft, name), FILE), content);
      move(draft, new Path(folder), Options.Rename.NONE);
    }
  }

  /** Makes a file, in place of one of this name. */
  public void replace(String path, byte[] content) throws IOException {
    Path file = new Path(path);
    if (files.hasPathCapability(file, IF_ABSENT)) {
      write(files.create(file, true), content);
    } else {
      files.mkdirs(file.getParent(), FOLDER);
      Path draft = draft(file);
      write(FileSystem.create(files, draft, FILE), content);
      move(draft, file, Options.Rename.OVERWRITE);
    }
  }

  /** Removes a file or a folder with all that is in it, if it is there. */
  public void remove(String path) throws IOException {
    files.delete(new Path(path), true);
  }

  private static Path draft(Path path) {
    return path.suffix("." + UUID.randomUUID() + ".tmp");
  }

  private static void write(FSDataOutputStream out, byte[] content) throws IOException {
    try (out) {
      out.write(content);
      if (out.hasCapability(StreamCapabilities.HSYNC)) {
        out.hsync();
      }
    }
  }

  private void move(Path draft, Path place, Options.Rename how) throws IOException {
    try {
      // Unlike that of FileSystem, this rename is one step that says whether there was a file of the name.
      FileContext.getFileContext(files.getUri(), files.getConf()).rename(draft, place, how);
    } catch (IOException failure) {
      files.delete(draft, true);
      throw failure;
    }
  }
}
