package jmsbridge.find;

import java.nio.ByteBuffer;
import java.util.Comparator;
import java.util.List;
import java.util.PriorityQueue;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/** The newest of the records that several threads find, so many at most. */
final class Newest {
  /** Limit of the bytes of all of them. */
  private static final long MOST_BYTES = 256 << 20;

  private final int capacity;
  /** Place of the last record that was given before; null: none was. */
  private final Hit.Place after;
  private final PriorityQueue<Hit> kept = new PriorityQueue<>(Comparator.comparing(Hit::place).reversed());
  private long bytes;
  private boolean leavesSome;

  Newest(int capacity, Hit.Place after) {
    this.capacity = capacity;
    this.after = after;
  }

  synchronized void add(ConsumerRecord<ByteBuffer, ByteBuffer> record) {
    Hit.Place place = Hit.Place.of(record);
    if (after != null && place.compareTo(after) <= 0) {
      return;
    }
    if (kept.size() == capacity) {
      leavesSome = true;
      if (place.compareTo(kept.peek().place()) > 0) {
        return;
      }
      bytes -= kept.poll().size();
    }
    Hit hit = Hit.of(place, record);
    kept.add(hit);
    bytes += hit.size();
    if (bytes > MOST_BYTES) {
      throw new TooLargeException(
          "%d records that were found have more than %d MiB; ask for fewer".formatted(kept.size(), MOST_BYTES >> 20));
    }
  }

  /** The records, the newest first. */
  synchronized List<Hit> hits() {
    return kept.stream().sorted(Comparator.comparing(Hit::place)).toList();
  }

  /** Whether there are more records than were wanted. */
  synchronized boolean leavesSome() {
    return leavesSome;
  }

  /** The records that were found do not fit into memory. */
  static final class TooLargeException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    TooLargeException(String message) {
      super(message);
    }
  }
}
