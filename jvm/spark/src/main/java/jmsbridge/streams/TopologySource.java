package jmsbridge.streams;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import jmsbridge.kafka.ShortIntervals;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.PartitionOffset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl;
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeMode;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Source of a topology's run, whose id is the option {@code run}: a task for each share of the partitions. */
public final class TopologySource implements TableProvider {
  private static final long MOST_WAITING = 1_000_000;
  private static final StructType TYPE = new StructType().add("share", DataTypes.IntegerType, false);

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    return TYPE;
  }

  @Override
  public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> options) {
    return new TopologyTable();
  }

  private static final class TopologyTable implements SupportsRead {
    @Override
    public String name() {
      return "topology";
    }

    @Override
    @SuppressWarnings("deprecation")
    public StructType schema() {
      return TYPE;
    }

    @Override
    public Set<TableCapability> capabilities() {
      return Set.of(TableCapability.MICRO_BATCH_READ);
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
      String run = options.get("run");
      return () -> new Scan() {
        @Override
        public StructType readSchema() {
          return TYPE;
        }

        @Override
        public MicroBatchStream toMicroBatchStream(String checkpoint) {
          return new Stream(run, TopologyRun.settings(run));
        }
      };
    }
  }

  private static final class Stream implements MicroBatchStream, SupportsRealTimeMode, SupportsAdmissionControl {
    private final String run;
    private final RunSettings settings;
    private final Set<TopicPartition> all = new HashSet<>();
    /** First positions of topics that are new to the topology. */
    private final Map<TopicPartition, Long> beginnings = new HashMap<>();
    private KafkaConsumer<byte[], byte[]> consumer;
    private final BatchEnds batchEnds;
    /** Null if no node follows the clock. */
    private final BatchClock clock;
    private boolean isRealTime;
    /** Whether so many records wait that short intervals, between which none is processed, would delay them. */
    private boolean isBehind;

    Stream(String run, RunSettings settings) {
      this.run = run;
      this.settings = settings;
      batchEnds = new BatchEnds(settings);
      clock = settings.program().followsClock() ? new BatchClock(settings.program()) : null;
      settings.partitions().forEach((topic, count) -> {
        for (int partition = 0; partition < count; partition++) {
          all.add(new TopicPartition(topic, partition));
        }
      });
    }

    @Override
    public Offset initialOffset() {
      return new Positions(consumer().beginningOffsets(all));
    }

    @Override
    public Offset deserializeOffset(String json) {
      return Positions.read(json);
    }

    @Override
    public Offset latestOffset() {
      return new Positions(consumer().endOffsets(all));
    }

    @Override
    public Offset latestOffset(Offset start, ReadLimit limit) {
      if (TopologyRun.isFinishing(run)) {
        return start;
      }
      if (isRealTime) {
        Positions latest = (Positions) latestOffset();
        isBehind = latest.after((Positions) start) > MOST_WAITING;
        return latest;
      }
      long now = System.currentTimeMillis();
      Map<TopicPartition, Long> planned = batchEnds.of(ofPresentTopics((Positions) start), () -> consumer().endOffsets(all));
      return clock == null
          ? new Positions(planned)
          : clock.positions((Positions) start, now, batchEnds.seen(), planned, TopologyRun.due(run));
    }

    @Override
    public InputPartition[] planInputPartitions(Offset start, Offset end) {
      return ranges((Positions) start, (Positions) end);
    }

    @Override
    public InputPartition[] planInputPartitions(Offset start) {
      return ranges((Positions) start, null);
    }

    @Override
    public Offset mergeOffsets(PartitionOffset[] offsets) {
      Map<TopicPartition, Long> next = new HashMap<>();
      for (PartitionOffset start : offsets) {
        next.putAll(((Positions) start).next());
      }
      return new Positions(next);
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
      return new ShareReader.Factory(settings, isRealTime && !isBehind ? ShortIntervals.nanos() : Long.MAX_VALUE);
    }

    @Override
    public void commit(Offset end) {
      if (isRealTime) {
        ShortIntervals.commit();
        TopologyRun.committed(run);
      }
    }

    @Override
    public void prepareForRealTimeMode() {
      isRealTime = true;
    }

    @Override
    public void stop() {
      if (consumer != null) {
        boolean interrupted = Thread.interrupted();
        consumer.close(java.time.Duration.ofSeconds(1));
        batchEnds.close();
        if (interrupted) {
          Thread.currentThread().interrupt();
        }
      }
    }

    private InputPartition[] ranges(Positions start, Positions end) {
      Map<TopicPartition, Long> from = ofPresentTopics(start);
      InputPartition[] ranges = new InputPartition[settings.shares()];
      for (int share = 0; share < ranges.length; share++) {
        ranges[share] = end == null
            ? new ShareRange(run, share, of(share, from), null, Positions.NEVER, Positions.NEVER)
            : new ShareRange(run, share, of(share, from), of(share, end.next()), end.clock(), end.tickAfter(start));
      }
      return ranges;
    }

    /** The positions of the topics that the topology reads now; one that is new to it begins with its first record. */
    private Map<TopicPartition, Long> ofPresentTopics(Positions start) {
      Map<TopicPartition, Long> ends = new HashMap<>(start.next());
      ends.keySet().retainAll(all);
      Set<TopicPartition> fresh = new HashSet<>(all);
      fresh.removeAll(ends.keySet());
      if (!fresh.isEmpty()) {
        beginnings.keySet().retainAll(fresh);
        fresh.removeAll(beginnings.keySet());
        beginnings.putAll(consumer().beginningOffsets(fresh));
        ends.putAll(beginnings);
      }
      return ends;
    }

    private Map<TopicPartition, Long> of(int share, Map<TopicPartition, Long> offsets) {
      Map<TopicPartition, Long> next = new HashMap<>(offsets);
      // A batch of the run before can have ends of topics that are not read any more.
      next.keySet().removeIf(each -> each.partition() != share || !all.contains(each));
      return next;
    }

    private KafkaConsumer<byte[], byte[]> consumer() {
      if (consumer == null) {
        consumer = new KafkaConsumer<>(settings.consumer(), new ByteArrayDeserializer(), new ByteArrayDeserializer());
      }
      return consumer;
    }
  }
}
