package jmsbridge.find;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.common.TopicPartition;

/** Pieces of partitions that threads read together, and what they find. */
final class Round {
  final Newest newest;
  /** Offsets that were read. */
  final AtomicLong read = new AtomicLong();
  final AtomicLong records = new AtomicLong();
  /** Offsets that retention has removed before they were read. */
  final AtomicLong removed = new AtomicLong();
  private final Queue<Piece> pieces = new ConcurrentLinkedQueue<>();

  /** Offsets of a partition from one up to another one. */
  record Piece(TopicPartition partition, long from, long to) {}

  Round(JsonNode json) {
    JsonNode after = json.get("after");
    Hit.Place last = after.isNull() ? null
        : new Hit.Place(after.get(0).asLong(), after.get(1).asText(), after.get(2).asInt(), after.get(3).asLong());
    newest = new Newest(json.get("most").asInt(), last);
    for (JsonNode piece : json.get("pieces")) {
      TopicPartition partition = new TopicPartition(piece.get(0).asText(), piece.get(1).asInt());
      pieces.add(new Piece(partition, piece.get(2).asLong(), piece.get(3).asLong()));
    }
  }

  /** Takes the next piece; null if there is none left. */
  Piece next() {
    return pieces.poll();
  }

  /** Leaves out all pieces that nobody has taken. */
  void stop() {
    pieces.clear();
  }
}
