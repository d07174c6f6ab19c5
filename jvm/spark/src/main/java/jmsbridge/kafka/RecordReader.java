package jmsbridge.kafka;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Collections;
import java.util.Iterator;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.PartitionOffset;
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeRead;
import org.apache.spark.sql.kafka010.KafkaBatchInputPartition;
import org.apache.spark.sql.kafka010.KafkaSourcePartitionOffset;

/**
 * Reads a partition: in batches up to an offset, in real-time mode until the time is up.
 *
 * <p>The consumer goes from record to record on its own and leaves none out: should records be removed before it gets
 * to them, the broker says that its offset is out of range.
 */
final class RecordReader implements SupportsRealTimeRead<InternalRow> {
  private static final RecordStatus RECORD = RecordStatus.newStatusWithoutArrivalTime(true);
  private static final RecordStatus NONE = RecordStatus.newStatusWithoutArrivalTime(false);

  private final KafkaBatchInputPartition range;
  private final TopicPartition partition;
  private final long until;
  private final UUID stream;
  private final KafkaConsumer<ByteBuffer, ByteBuffer> consumer;
  private final RecordRow row;
  private Iterator<ConsumerRecord<ByteBuffer, ByteBuffer>> polled = Collections.emptyIterator();
  /** Everything before it was read, or cannot be seen. */
  private long offset;
  /** Whether a task of real-time mode reads. */
  private boolean isRealTime;
  /** Whether another reader may go on with the consumer. */
  private boolean sound = true;

  /** Makes readers for one stream, or for a range that is read once if that is null. */
  record Factory(UUID stream) implements PartitionReaderFactory {
    @Override
    public PartitionReader<InternalRow> createReader(InputPartition range) {
      return new RecordReader((KafkaBatchInputPartition) range, stream);
    }
  }

  private RecordReader(KafkaBatchInputPartition range, UUID stream) {
    this.range = range;
    this.stream = stream;
    partition = range.offsetRange().topicPartition();
    until = range.offsetRange().untilOffset();
    offset = range.offsetRange().fromOffset();
    row = new RecordRow(partition, range.includeHeaders());
    consumer = Consumers.take(stream, partition, range.executorKafkaParams(), offset);
  }

  /**
   * Goes to the next record before the end of the range.
   *
   * @throws TimeoutException Kafka gave nothing for as long as the source's option {@code kafkaConsumer.pollTimeoutMs}
   */
  @Override
  public boolean next() {
    while (offset < until) {
      if (polled.hasNext()) {
        return take() < until;
      }
      long before = offset;
      poll(range.pollTimeoutMs());
      if (offset == before && !polled.hasNext()) {
        String message = "Kafka gave nothing of %s from offset %d on for %d ms";
        throw new TimeoutException(message.formatted(partition, offset, range.pollTimeoutMs()));
      }
    }
    return false;
  }

  @Override
  public RecordStatus nextWithTimeout(Long now, Long timeoutMs) {
    if (!isRealTime) {
      isRealTime = true;
      Readiness.reads(partition.partition());
    }
    if (!polled.hasNext()) {
      long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMs);
      long left = timeoutMs;
      while (!polled.hasNext() && left > 0) {
        poll(left);
        left = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
      }
      if (!polled.hasNext()) {
        return NONE;
      }
    }
    take();
    return RECORD;
  }

  @Override
  public InternalRow get() {
    return row.get();
  }

  @Override
  public PartitionOffset getOffset() {
    return new KafkaSourcePartitionOffset(partition, offset);
  }

  @Override
  public void close() {
    if (stream != null && !isRealTime && offset >= until) {
      Readiness.looked();
    }
    if (sound) {
      Consumers.give(stream, partition, consumer);
    } else {
      Consumers.close(consumer);
    }
  }

  /** Makes the next record the row; gives its offset. */
  private long take() {
    ConsumerRecord<ByteBuffer, ByteBuffer> record = polled.next();
    row.set(record);
    // Behind the last one may be what cannot be seen: markers of transactions, and records of aborted ones.
    offset = polled.hasNext() ? record.offset() + 1 : consumer.position(partition);
    return record.offset();
  }

  /** Returns with records, further on because of what cannot be seen, or when the time is up. */
  private void poll(long timeoutMs) {
    sound = false;
    try {
      polled = consumer.poll(Duration.ofMillis(timeoutMs)).iterator();
      if (!polled.hasNext()) {
        offset = consumer.position(partition);
      }
    } catch (OffsetOutOfRangeException failure) {
      if (range.failOnDataLoss()) {
        throw failure;
      }
      skipRemoved();
    }
    sound = true;
  }

  private void skipRemoved() {
    long first = consumer.beginningOffsets(Set.of(partition)).get(partition);
    // An offset that is not too low is too high: of what is asked for there is nothing any more.
    offset = first > offset ? Math.min(first, until) : until;
    consumer.seek(partition, offset);
  }
}
