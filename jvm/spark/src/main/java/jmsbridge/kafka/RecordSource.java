package jmsbridge.kafka;

import java.util.Map;
import java.util.Set;
import java.util.UUID;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.kafka010.KafkaBatchInputPartition;
import org.apache.spark.sql.kafka010.KafkaMicroBatchStream;
import org.apache.spark.sql.kafka010.KafkaOffsetRange;
import org.apache.spark.sql.kafka010.KafkaSourceProvider;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Spark's Kafka source, with its options, schema and offsets, but a faster reader.
 *
 * <p>Spark's source still determines the ranges of offsets to read; {@link RecordReader} reads them. Spark's own reader
 * builds a row of objects for each record and then converts the row. In batches it also asks the broker for the ends of
 * the partition at every poll, and discards the records that were fetched in advance.
 */
public final class RecordSource implements TableProvider {
  private final KafkaSourceProvider kafka = new KafkaSourceProvider();

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    return kafka.inferSchema(options);
  }

  @Override
  public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
    return new RecordTable((SupportsRead) kafka.getTable(schema, partitioning, properties));
  }

  private record RecordTable(SupportsRead kafka) implements SupportsRead {
    @Override
    public String name() {
      return kafka.name();
    }

    @Override
    @SuppressWarnings("deprecation")
    public StructType schema() {
      return kafka.schema();
    }

    @Override
    public Set<TableCapability> capabilities() {
      return Set.of(TableCapability.BATCH_READ, TableCapability.MICRO_BATCH_READ);
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
      Scan scan = kafka.newScanBuilder(options).build();
      return () -> new RecordScan(scan);
    }
  }

  private record RecordScan(Scan kafka) implements Scan {
    @Override
    public StructType readSchema() {
      return kafka.readSchema();
    }

    @Override
    public String description() {
      return kafka.description();
    }

    @Override
    public Batch toBatch() {
      return new RecordBatch(kafka.toBatch());
    }

    @Override
    public MicroBatchStream toMicroBatchStream(String checkpoint) {
      KafkaMicroBatchStream stream = (KafkaMicroBatchStream) kafka.toMicroBatchStream(checkpoint);
      return new RecordStream(stream, UUID.randomUUID());
    }
  }

  private record RecordBatch(Batch kafka) implements Batch {
    @Override
    public InputPartition[] planInputPartitions() {
      InputPartition[] ranges = kafka.planInputPartitions();
      for (InputPartition range : ranges) {
        KafkaOffsetRange offsets = ((KafkaBatchInputPartition) range).offsetRange();
        if (offsets.fromOffset() < 0 || offsets.untilOffset() < 0) {
          throw new IllegalArgumentException("startingOffsets and endingOffsets must be numbers, not " + offsets);
        }
      }
      return ranges;
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
      return new RecordReader.Factory(null, Long.MAX_VALUE);
    }
  }
}
