package jmsbridge.kafka;

import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import jmsbridge.figures.Readiness;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.PartitionOffset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics;
import org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl;
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeMode;
import org.apache.spark.sql.kafka010.KafkaMicroBatchStream;

/** Stream of the source: delegates to Spark's Kafka stream, but makes readers of its own and a short first batch. */
final class RecordStream
    implements MicroBatchStream, SupportsRealTimeMode, SupportsAdmissionControl, ReportsSourceMetrics {
  /**
   * Limit of the first batch of a long backlog. A short batch gives a commit soon. It also lets Java see the end of a
   * batch before it compiles the loop for many records; otherwise it would compile again in the middle of the backlog.
   */
  private static final ReadLimit FIRST_BATCH = ReadLimit.maxRows(200_000);

  private final KafkaMicroBatchStream kafka;
  private final UUID id;
  private boolean begun;
  private boolean isRealTime;

  RecordStream(KafkaMicroBatchStream kafka, UUID id) {
    this.kafka = kafka;
    this.id = id;
    Consumers.open(id);
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return new RecordReader.Factory(id, isRealTime ? ShortIntervals.nanos() : Long.MAX_VALUE);
  }

  @Override
  public void stop() {
    try {
      Consumers.close(id);
    } finally {
      kafka.stop();
    }
  }

  @Override
  public Offset initialOffset() {
    return kafka.initialOffset();
  }

  @Override
  public Offset deserializeOffset(String json) {
    return kafka.deserializeOffset(json);
  }

  @Override
  public Offset latestOffset() {
    return kafka.latestOffset();
  }

  @Override
  public Offset latestOffset(Offset start, ReadLimit limit) {
    Offset end = kafka.latestOffset(start, begun ? limit : FIRST_BATCH);
    if (!isRealTime && start.equals(end)) {
      Readiness.looked();
    }
    begun |= !start.equals(end);
    return end;
  }

  @Override
  public Offset reportLatestOffset() {
    return kafka.reportLatestOffset();
  }

  @Override
  public ReadLimit getDefaultReadLimit() {
    return kafka.getDefaultReadLimit();
  }

  @Override
  public InputPartition[] planInputPartitions(Offset start, Offset end) {
    return kafka.planInputPartitions(start, end);
  }

  @Override
  public InputPartition[] planInputPartitions(Offset start) {
    return kafka.planInputPartitions(start);
  }

  @Override
  public Offset mergeOffsets(PartitionOffset[] offsets) {
    return kafka.mergeOffsets(offsets);
  }

  @Override
  public void prepareForRealTimeMode() {
    isRealTime = true;
    kafka.prepareForRealTimeMode();
  }

  @Override
  public Map<String, String> metrics(Optional<Offset> latestConsumed) {
    return kafka.metrics(latestConsumed);
  }

  @Override
  public void commit(Offset end) {
    if (isRealTime) {
      ShortIntervals.commit();
    }
    kafka.commit(end);
  }

  @Override
  public String toString() {
    return kafka.toString();
  }
}
