package jmsbridge.kafka;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Collections;
import java.util.Iterator;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import jmsbridge.figures.Readiness;
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
 * Reader of a partition: in batches up to an offset, in real-time mode until a time limit.
 *
 * <p>The consumer proceeds from record to record by itself and leaves none out. If retention removes records before the
 * consumer reaches them, the broker answers that its offset is out of range.
 */
final class RecordReader implements SupportsRealTimeRead<InternalRow> {
  private static final RecordStatus RECORD = RecordStatus.newStatusWithoutArrivalTime(true);
  private static final RecordStatus NONE = RecordStatus.newStatusWithoutArrivalTime(false);

  private final KafkaBatchInputPartition range;
  private final TopicPartition partition;
  private final long until;
  private final UUID stream;
  private final long intervalNanos;
  private final long begun = System.nanoTime();
  private final KafkaConsumer<ByteBuffer, ByteBuffer> consumer;
  private final RecordRow row;
  private Iterator<ConsumerRecord<ByteBuffer, ByteBuffer>> polled = Collections.emptyIterator();
  /** Offset below which every record was read or is invisible to readers of committed records. */
  private long offset;
  /** True if a task of real-time mode reads. */
  private boolean isRealTime;
  /** True if another reader may continue with the consumer. */
  private boolean sound = true;

  /**
   * Maker of readers for one stream; if `stream` is null, for a range that is read once. In real-time mode its readers
   * end after {@code intervalNanos}, if Spark does not end them before.
   */
  record Factory(UUID stream, long intervalNanos) implements PartitionReaderFactory {
    @Override
    public PartitionReader<InternalRow> createReader(InputPartition range) {
      return new RecordReader((KafkaBatchInputPartition) range, stream, intervalNanos);
    }
  }

  private RecordReader(KafkaBatchInputPartition range, UUID stream, long intervalNanos) {
    this.range = range;
    this.stream = stream;
    this.intervalNanos = intervalNanos;
    partition = range.offsetRange().topicPartition();
    until = range.offsetRange().untilOffset();
    offset = range.offsetRange().fromOffset();
    row = new RecordRow(partition, range.includeHeaders());
    consumer = Consumers.take(stream, partition, range.executorKafkaParams(), offset);
  }

  /**
   * Proceeds to the next record before the end of the range; returns false if there is none.
   *
   * @throws TimeoutException Kafka gave no record within the source's option {@code kafkaConsumer.pollTimeoutMs}
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
    long left = leftMs(timeoutMs);
    if (left <= 0 || !polled.hasNext() && !arrives(left)) {
      return NONE;
    }
    take();
    return RECORD;
  }

  @Override
  public InternalRow get() {
    return row;
  }

  @Override
  public PartitionOffset getOffset() {
    return new KafkaSourcePartitionOffset(partition, offset);
  }

  @Override
  public void close() {
    CurrentRecord.set(null);
    if (stream != null && !isRealTime && offset >= until) {
      Readiness.looked();
    }
    if (sound) {
      Consumers.give(stream, partition, consumer);
    } else {
      Consumers.close(consumer);
    }
  }

  /** Polls for records, for a time at most; returns true if there are some. */
  private boolean arrives(long timeoutMs) {
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMs);
    long left = timeoutMs;
    while (!polled.hasNext() && left > 0) {
      poll(left);
      left = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
    }
    return polled.hasNext();
  }

  /** Time until the end of the interval, which Spark expects after {@code timeoutMs}. */
  private long leftMs(long timeoutMs) {
    return intervalNanos == Long.MAX_VALUE
        ? timeoutMs
        : Math.min(timeoutMs, TimeUnit.NANOSECONDS.toMillis(begun + intervalNanos - System.nanoTime()));
  }

  /** Writes the next record into the row; returns its offset. */
  private long take() {
    ConsumerRecord<ByteBuffer, ByteBuffer> record = polled.next();
    row.set(record);
    CurrentRecord.set(row);
    // Offsets behind the last record may be invisible: markers of transactions, and records of aborted transactions.
    offset = polled.hasNext() ? record.offset() + 1 : consumer.position(partition);
    return record.offset();
  }

  /** Polls until there are records, or `offset` has advanced over invisible ones, or the time is up. */
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
    // An out-of-range offset that is not too low is too high: no record of the range exists any more.
    offset = first > offset ? Math.min(first, until) : until;
    consumer.seek(partition, offset);
  }
}
