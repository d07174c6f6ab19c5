package jmsbridge.streams;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/**
 * Note of the record that a share processes, in a file that is there after the JVM has ended, however that came about.
 *
 * <p>The file has an offset, or -1 if no record is under way, then the length of a topic and the topic; numbers are most
 * significant byte first. Its name is the partition. `engine/topologies/runtime/deaths.py` reads it.
 */
final class RecordMark {
  private static final long NONE = -1;
  private static final int LENGTH_AT = Long.BYTES;
  private static final int TOPIC_AT = LENGTH_AT + Integer.BYTES;
  /** Topics have 249 characters of one byte at most. */
  private static final int BYTES = 512;

  private final MappedByteBuffer file;
  private String topic = "";

  /** Creates the note of a share in a folder, which is made; null: it is written nowhere. */
  RecordMark(String folder, int share) {
    if (folder == null) {
      file = null;
      return;
    }
    Path path = Path.of(folder, Integer.toString(share));
    try {
      Files.createDirectories(path.getParent());
      try (FileChannel channel = FileChannel.open(
          path, StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
        file = channel.map(FileChannel.MapMode.READ_WRITE, 0, BYTES);
      }
    } catch (IOException failure) {
      throw new UncheckedIOException(failure);
    }
    file.putLong(0, NONE);
  }

  /** Notes that a record is under way. */
  void begin(ConsumerRecord<byte[], byte[]> record) {
    if (file == null) {
      return;
    }
    if (!topic.equals(record.topic())) {
      topic = record.topic();
      byte[] name = topic.getBytes(StandardCharsets.UTF_8);
      file.putInt(LENGTH_AT, name.length);
      file.put(TOPIC_AT, name);
    }
    file.putLong(0, record.offset());
  }

  /** Notes that none is. */
  void end() {
    if (file != null) {
      file.putLong(0, NONE);
    }
  }
}
