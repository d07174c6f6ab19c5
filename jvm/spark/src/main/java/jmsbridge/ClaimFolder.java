package jmsbridge;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.util.HexFormat;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Folder of bodies that are kept as files, on a local disk or on a file system of Hadoop. It has a folder for each day
 * of UTC, and there each file has the SHA-256 of its content for a name. A file appears as a whole or not at all.
 */
public final class ClaimFolder {
  private static final Map<String, ClaimFolder> KNOWN = new ConcurrentHashMap<>();
  private static final Set<PosixFilePermission> OWN = PosixFilePermissions.fromString("rwx------");
  private static final Set<PosixFilePermission> EXECUTE = PosixFilePermissions.fromString("--x--x--x");

  private final String place;
  /** Null for a local disk. */
  private final HadoopFiles files;

  private ClaimFolder(String place) throws IOException {
    this.place = place;
    files = place.startsWith("/") ? null : new HadoopFiles(place);
  }

  /** The folder at an absolute local path, or at a URI. */
  public static ClaimFolder at(String place) throws IOException {
    ClaimFolder known = KNOWN.get(place);
    if (known == null) {
      known = new ClaimFolder(place);
      KNOWN.put(place, known);
    }
    return known;
  }

  /** Keeps a body until its day is removed; returns the claim on it: name of the file in the folder, blank, size. */
  public String keep(byte[] body) throws IOException {
    String day = LocalDate.now(ZoneOffset.UTC).toString();
    String digest = HexFormat.of().formatHex(sha256().digest(body));
    if (files != null) {
      String file = place + "/" + day + "/" + digest;
      if (files.size(file) != body.length) {
        files.replace(file, body);
      }
    } else {
      keep(Path.of(place), day, digest, body);
    }
    return day + "/" + digest + " " + body.length;
  }

  /** The content of a file; FileNotFoundException if it is gone, another exception if the folder is not there. */
  public byte[] read(String name) throws IOException {
    String file = place + "/" + name;
    try {
      return files != null ? files.read(file) : Files.readAllBytes(Path.of(file));
    } catch (FileNotFoundException | NoSuchFileException gone) {
      if (files != null ? files.exists(place) : Files.isDirectory(Path.of(place))) {
        throw new FileNotFoundException(file);
      }
      throw new IOException("there is no folder " + place, gone);
    }
  }

  private static void keep(Path folder, String day, String digest, byte[] body) throws IOException {
    if (!Files.isDirectory(folder)) {
      Files.createDirectories(folder, PosixFilePermissions.asFileAttribute(OWN));
    }
    // The rights of the folder say who reads; the umask of this process does not.
    Set<PosixFilePermission> rights = Files.getPosixFilePermissions(folder);
    Path parent = folder.resolve(day);
    try {
      Files.createDirectory(parent);
      Files.setPosixFilePermissions(parent, rights);
    } catch (FileAlreadyExistsException another) {
      // Made for an earlier body of the day.
    }
    Path file = parent.resolve(digest);
    if (Files.exists(file) && Files.size(file) == body.length) {
      return;
    }
    Path draft = Files.createTempFile(parent, digest + ".", ".tmp");
    try {
      try (FileChannel out = FileChannel.open(draft, StandardOpenOption.WRITE)) {
        ByteBuffer left = ByteBuffer.wrap(body);
        while (left.hasRemaining()) {
          out.write(left);
        }
        out.force(true);
      }
      rights.removeAll(EXECUTE);
      Files.setPosixFilePermissions(draft, rights);
      Files.move(draft, file, StandardCopyOption.ATOMIC_MOVE);
    } finally {
      Files.deleteIfExists(draft);
    }
    for (Path directory : new Path[] {parent, folder}) {
      try (FileChannel names = FileChannel.open(directory, StandardOpenOption.READ)) {
        names.force(true);
      }
    }
  }

  private static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException error) {
      throw new IllegalStateException(error);
    }
  }
}
