package jmsbridge.streams;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import jmsbridge.serdes.UnfitValueException;
import jmsbridge.serdes.ValueReader;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;

/**
 * Table of the latest value of each key of all partitions of a topic, which all tasks have whole.
 *
 * <p>Its rows are in memory and are read from the topic's beginning at each start.
 */
final class GlobalTable extends Node implements TableState {
  private static final long serialVersionUID = 1L;

  final String topic;
  private final KeyReader keys;
  private final ValueReader reader;
  private final RowCheck check;
  /** Rows as bytes by key, which the copies of the node in all tasks share. */
  private transient Map<ByteBuffer, byte[]> rows;

  GlobalTable(String name, StructType type, String topic, KeyReader keys, ValueReader reader) {
    super(name, type);
    this.topic = topic;
    this.keys = keys;
    this.reader = reader;
    check = new RowCheck(type);
  }

  /** Sets the rows, shared with the copies of the node in other tasks. */
  void share(Map<ByteBuffer, byte[]> shared) {
    rows = shared;
  }

  static Map<ByteBuffer, byte[]> noRows() {
    return new ConcurrentHashMap<>();
  }

  /** Begins to fetch what is needed to read these records. */
  void expect(List<ConsumerRecord<byte[], byte[]>> records) {
    keys.expect(records.stream().map(ConsumerRecord::key));
    reader.expect(records.stream().map(ConsumerRecord::value));
  }

  /**
   * Record whose {@code key} or {@code value}, the reason, cannot be read.
   *
   * @param node name of the table
   */
  record Unread(String node, ConsumerRecord<byte[], byte[]> record, String reason, UnfitValueException why) {
    TopicPartition partition() {
      return new TopicPartition(record.topic(), record.partition());
    }

    /** Leaves the record to the topology's policy for failures. */
    void reject(TaskContext task) {
      task.begin(record);
      task.reject(node, reason, task.read(), record.value(), new EvaluationException(why));
    }
  }

  /** Takes a record of the topic; gives it back if it cannot be read, in which case the rows stay, else null. */
  Unread take(ConsumerRecord<byte[], byte[]> record) {
    String part = "key";
    try {
      byte[] key = keys.read(record.key());
      part = "value";
      if (key != null && record.value() == null) {
        rows.remove(ByteBuffer.wrap(key));
      } else if (key != null) {
        rows.put(ByteBuffer.wrap(key), Rows.bytes(reader.read(record.value()).copy()));
      }
      return null;
    } catch (UnfitValueException unfit) {
      return new Unread(name, record, part, unfit);
    }
  }

  @Override
  void process(StreamRecord record, int port) {
    throw new IllegalStateException("a global table has no inputs");
  }

  @Override
  public InternalRow lookUp(byte[] of) {
    byte[] row = rows.get(ByteBuffer.wrap(of));
    return row == null ? null : check.kept(row, 0);
  }

  /** Joins with a global table have the times of the other side, as in Kafka Streams. */
  @Override
  public long timeOf(byte[] of) {
    return Long.MIN_VALUE;
  }
}
