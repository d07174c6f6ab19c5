package jmsbridge.find;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.zip.CRC32;
import jmsbridge.kafka.HeaderArray;
import org.apache.kafka.common.header.Header;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Writer of Bloom filters of the ids in blocks of partitions, which {@code engine/find/id_filters.py} reads. One thread
 * uses an object.
 *
 * <p>A filter has pages with a checksum each. An id has all its bits in one page, so that a reader needs no other one.
 */
final class IdFilters {
  private static final int PAGE_BYTES = 4096;
  private static final int PAGE_BITS = (PAGE_BYTES - Integer.BYTES) * Byte.SIZE;
  private static final int BITS_FOR_EACH = 12;
  private static final int HASHES = 8;
  private static final byte[] BEGINNING = "ID:".getBytes(StandardCharsets.US_ASCII);

  /** Topics that have filters, by name. */
  private final Map<String, Topic> topics = new HashMap<>();
  private final long blockSize;
  private final Set<UTF8String> names = new HashSet<>();
  private final HeaderArray headers = new HeaderArray();
  private HeaderArray.Places places = new HeaderArray.Places(null, new int[0]);
  private long[] hashes = new long[1 << 12];
  private int count;

  /** Folder of the filters of a topic, and Kafka's id of it. */
  private record Topic(Path folder, String id) {
    Topic(JsonNode json) {
      this(Path.of(json.get("folder").asText()), json.get("id").asText());
    }

    Path file(Round.Piece piece) {
      return folder.resolve(piece.partition().partition() + "-" + piece.from());
    }
  }

  IdFilters(JsonNode json) {
    json.get("topics").properties().forEach(each -> topics.put(each.getKey(), new Topic(each.getValue())));
    blockSize = json.get("block").asLong();
    json.get("names").forEach(each -> names.add(UTF8String.fromString(each.asText())));
  }

  /** Begins with a piece; returns false unless it is a block without a filter. */
  boolean begin(Round.Piece piece) {
    count = 0;
    Topic topic = topics.get(piece.partition().topic());
    return topic != null && piece.from() % blockSize == 0
        && piece.to() - piece.from() == blockSize && !Files.exists(topic.file(piece));
  }

  /** Adds the ids of a record of the piece. */
  void add(Header[] given) {
    headers.set(given);
    if (!places.isOf(headers)) {
      places = headers.find(names);
    }
    for (int place : places.indexes()) {
      byte[] value = given[place].value();
      if (value != null) {
        if (count == hashes.length) {
          hashes = Arrays.copyOf(hashes, 2 * count);
        }
        hashes[count++] = hash(value);
      }
    }
  }

  /** Writes the filter of the piece, of which every record was added. A folder that cannot be written has none. */
  void write(Round.Piece piece) {
    Topic topic = topics.get(piece.partition().topic());
    int pages = 1 + (int) ((long) count * BITS_FOR_EACH / PAGE_BITS);
    byte[] bytes = new byte[pages * PAGE_BYTES];
    for (int index = 0; index < count; index++) {
      set(bytes, hashes[index], pages);
    }
    for (int page = 0; page < pages; page++) {
      CRC32 sum = new CRC32();
      sum.update("%s %d %d %d %d".formatted(topic.id, piece.partition().partition(), piece.from(), page, pages)
          .getBytes(StandardCharsets.US_ASCII));
      sum.update(bytes, page * PAGE_BYTES, PAGE_BITS / Byte.SIZE);
      ByteBuffer.wrap(bytes).putInt((page + 1) * PAGE_BYTES - Integer.BYTES, (int) sum.getValue());
    }
    Path file = topic.file(piece);
    try {
      Path made = Files.createTempFile(topic.folder, "new", null);
      Files.write(made, bytes);
      Files.move(made, file, StandardCopyOption.ATOMIC_MOVE);
    } catch (IOException unwritable) {
      System.err.println("no filter " + file + ": " + unwritable);
    }
  }

  private static void set(byte[] bytes, long hash, int pages) {
    int page = (int) Long.remainderUnsigned(hash, pages);
    long step = Long.divideUnsigned(hash, pages);
    long first = step & 0x7fffffff;
    long further = step >>> 31 | 1;
    for (int number = 0; number < HASHES; number++) {
      int bit = (int) ((first + number * further) % PAGE_BITS);
      bytes[page * PAGE_BYTES + bit / Byte.SIZE] |= (byte) (1 << bit % Byte.SIZE);
    }
  }

  /** FNV-1a of an id without its beginning, mixed. */
  private static long hash(byte[] id) {
    int start = Arrays.equals(id, 0, Math.min(id.length, BEGINNING.length), BEGINNING, 0, BEGINNING.length)
        ? BEGINNING.length : 0;
    long hash = 0xcbf29ce484222325L;
    for (int index = start; index < id.length; index++) {
      hash = (hash ^ id[index] & 0xff) * 0x100000001b3L;
    }
    hash = (hash ^ hash >>> 30) * 0xbf58476d1ce4e5b9L;
    hash = (hash ^ hash >>> 27) * 0x94d049bb133111ebL;
    return hash ^ hash >>> 31;
  }
}
