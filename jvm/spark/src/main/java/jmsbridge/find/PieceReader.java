package jmsbridge.find;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.ByteBufferDeserializer;

/** Reader of the pieces of rounds with a consumer of its own; one thread uses it. */
final class PieceReader {
  private static final Duration POLL = Duration.ofMillis(200);
  /** Time in which Kafka has to give something. */
  private static final long QUIET_NANOS = TimeUnit.SECONDS.toNanos(30);

  private final Map<String, Object> settings;
  private final Criteria criteria;
  /** Writer of filters; null: none are written. */
  private final IdFilters filters;
  private KafkaConsumer<ByteBuffer, ByteBuffer> consumer;

  PieceReader(Map<String, Object> settings, Criteria criteria, IdFilters filters) {
    this.settings = settings;
    this.criteria = criteria;
    this.filters = filters;
  }

  /**
   * Reads pieces of a round until there are none left.
   *
   * @throws TimeoutException Kafka gives nothing for a while
   */
  void read(Round round) {
    for (Round.Piece piece = round.next(); piece != null; piece = round.next()) {
      read(piece, round);
    }
  }

  private void read(Round.Piece piece, Round round) {
    if (consumer == null) {
      ByteBufferDeserializer asTheyCame = new ByteBufferDeserializer();
      consumer = new KafkaConsumer<>(settings, asTheyCame, asTheyCame);
    }
    TopicPartition partition = piece.partition();
    consumer.assign(List.of(partition));
    consumer.seek(partition, piece.from());
    long offset = piece.from();
    long heard = System.nanoTime();
    boolean isFiltered = filters != null && filters.begin(piece);
    while (offset < piece.to()) {
      long before = offset;
      try {
        take(consumer.poll(POLL), piece, round, isFiltered ? filters : null);
        offset = Math.min(consumer.position(partition), piece.to());
        round.read.addAndGet(offset - before);
      } catch (OffsetOutOfRangeException removed) {
        offset = firstLeft(offset, piece);
        round.removed.addAndGet(offset - before);
        isFiltered = false;
      }
      if (offset > before) {
        heard = System.nanoTime();
      } else if (System.nanoTime() - heard > QUIET_NANOS) {
        throw new TimeoutException("nothing came of %s from offset %d on".formatted(partition, offset));
      }
    }
    if (isFiltered) {
      filters.write(piece);
    }
  }

  private void take(
      ConsumerRecords<ByteBuffer, ByteBuffer> polled, Round.Piece piece, Round round, IdFilters filter) {
    int count = 0;
    for (ConsumerRecord<ByteBuffer, ByteBuffer> record : polled.records(piece.partition())) {
      if (record.offset() >= piece.to()) {
        break;
      }
      count++;
      if (criteria.take(record)) {
        round.newest.add(record);
      }
      if (filter != null) {
        filter.add(record.headers().toArray());
      }
    }
    round.records.addAndGet(count);
  }

  /** The first offset of the piece that retention has left, at which the consumer goes on; the end if there is none. */
  private long firstLeft(long offset, Round.Piece piece) {
    TopicPartition partition = piece.partition();
    long first = consumer.beginningOffsets(Set.of(partition)).get(partition);
    // An offset that is not too low is too high: the topic was made anew, or lost its end.
    long next = first > offset ? Math.min(first, piece.to()) : piece.to();
    consumer.seek(partition, next);
    return next;
  }
}
