package jmsbridge.streams;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Objects;
import java.util.Set;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FilterFileSystem;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * File system of a checkpoint that makes links to RocksDB's tables instead of copies: to those of the checkpoint, where
 * both are on one local disk, and else to copies that are kept from one run to the next.
 *
 * <p>RocksDB never changes a table that it has written, names of tables in a checkpoint are never used again, and
 * RocksDB checks each block of a table when it reads the block. So a link is as good as a new copy, and takes no longer
 * for a larger table.
 */
final class TableLinks extends FilterFileSystem {
  private static final String TABLE = ".sst";

  /** Folder of copies; null: none are kept. */
  private final Path kept;

  TableLinks(FileSystem files, Path kept) {
    super(files);
    this.kept = kept;
  }

  @Override
  public void copyFromLocalFile(boolean deletesSource, org.apache.hadoop.fs.Path from, org.apache.hadoop.fs.Path to)
      throws IOException {
    mkdirs(to.getParent());
    if (fs instanceof LocalFileSystem && isTable(from) && isLinked(local(from), local(to))) {
      setPermission(to, FsPermission.getFileDefault().applyUMask(FsPermission.getUMask(getConf())));
      return;
    }
    super.copyFromLocalFile(deletesSource, from, to);
    if (kept != null && isTable(to)) {
      Files.createDirectories(kept);
      isLinked(local(from), kept.resolve(to.getName()));
    }
  }

  @Override
  public void copyToLocalFile(boolean deletesSource, org.apache.hadoop.fs.Path from, org.apache.hadoop.fs.Path to)
      throws IOException {
    if (fs instanceof LocalFileSystem && isTable(from) && isLinked(local(from), local(to))) {
      return;
    }
    if (kept == null || !isTable(from) || !isLinked(copy(from), local(to))) {
      super.copyToLocalFile(deletesSource, from, to);
    }
  }

  /** The copy of a table, which is made if there is none of its length. */
  private Path copy(org.apache.hadoop.fs.Path of) throws IOException {
    Path copy = kept.resolve(of.getName());
    if (copy.toFile().length() != getFileStatus(of).getLen()) {
      Files.createDirectories(kept);
      Path draft = kept.resolve(of.getName() + ".tmp");
      fs.copyToLocalFile(false, of, new org.apache.hadoop.fs.Path(draft.toUri()), true);
      Files.move(draft, copy, StandardCopyOption.ATOMIC_MOVE);
    }
    return copy;
  }

  /** Removes the copies in a folder whose tables a checkpoint does not have any more. */
  static void retain(Path kept, Set<String> tables) {
    for (File copy : Objects.requireNonNullElse(kept.toFile().listFiles(), new File[0])) {
      if (copy.getName().endsWith(TABLE) && !tables.contains(copy.getName())) {
        copy.delete();
      }
    }
  }

  private static boolean isTable(org.apache.hadoop.fs.Path of) {
    return of.getName().endsWith(TABLE);
  }

  private static Path local(org.apache.hadoop.fs.Path of) {
    return Path.of(of.toUri().getPath());
  }

  /** Whether a link is made; none can be made from one file system to another, and some have no links. */
  private static boolean isLinked(Path from, Path to) {
    try {
      Files.createLink(to, from);
      return true;
    } catch (IOException | UnsupportedOperationException none) {
      return false;
    }
  }
}
