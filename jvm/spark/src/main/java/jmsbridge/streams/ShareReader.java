package jmsbridge.streams;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.streaming.PartitionOffset;
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeRead;

/**
 * Reader of a share. Its rows say the share alone: the sink, which runs in the same thread, takes the record from the
 * running share. In real-time mode there are also rows without a record, so that the sink sees the time pass.
 */
final class ShareReader implements SupportsRealTimeRead<InternalRow> {
  private static final RecordStatus ROW = RecordStatus.newStatusWithoutArrivalTime(true);
  private static final RecordStatus NONE = RecordStatus.newStatusWithoutArrivalTime(false);
  private static final long TICK_MS = 20;
  private static final long LIMIT_MS = 120_000;
  private static final int RECORDS_BETWEEN_POLLS = 500;

  private final String run;
  private final RunningShare share;
  private final ShareConsumer consumer;
  private final InternalRow row;
  private final long intervalNanos;
  private final long begun = System.nanoTime();
  private int sincePoll;

  /** Maker of readers that end in real-time mode after {@code intervalNanos}, if Spark does not end them before. */
  record Factory(RunSettings settings, long intervalNanos) implements PartitionReaderFactory {
    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
      return new ShareReader((ShareRange) partition, settings, intervalNanos);
    }
  }

  private ShareReader(ShareRange range, RunSettings settings, long intervalNanos) {
    this.intervalNanos = intervalNanos;
    run = range.run();
    share = RunningShare.of(range.run(), range.share(), settings);
    consumer = share.consumer();
    consumer.seek(range.from(), range.until());
    share.follow(range);
    row = new GenericInternalRow(new Object[] {range.share()});
  }

  @Override
  public boolean next() {
    ConsumerRecord<byte[], byte[]> record = consumer.next(LIMIT_MS);
    share.has(record);
    return record != null;
  }

  @Override
  public RecordStatus nextWithTimeout(Long now, Long timeoutMs) {
    if (TopologyRun.isFinishing(run) || intervalNanos != Long.MAX_VALUE && System.nanoTime() - begun >= intervalNanos) {
      return NONE;
    }
    boolean fetches = ++sincePoll >= RECORDS_BETWEEN_POLLS;
    ConsumerRecord<byte[], byte[]> record = consumer.poll(fetches ? 0 : Math.min(TICK_MS, timeoutMs), fetches);
    if (fetches || record == null) {
      sincePoll = 0;
    }
    share.has(record);
    return ROW;
  }

  @Override
  public InternalRow get() {
    return row;
  }

  @Override
  public PartitionOffset getOffset() {
    return new Positions(consumer.next());
  }

  @Override
  public void close() {}
}
