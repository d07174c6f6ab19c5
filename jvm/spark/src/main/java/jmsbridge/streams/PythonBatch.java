package jmsbridge.streams;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import jmsbridge.Limits;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** Records that wait for a Python function, as columns: the value, what is known about each record, and a number. */
final class PythonBatch implements Serializable, AutoCloseable {
  private static final long serialVersionUID = 1L;
  private static final int MOST = 2_000;

  private final StructType type;
  private final KeyKind key;
  private transient ArrowRows rows;
  private transient List<Cause> causes;
  private transient long bytes;

  /** A record that waits, and the record of a topic that the task was processing then. */
  record Cause(StreamRecord record, ConsumerRecord<byte[], byte[]> source) {
    /** Makes this record the one that the task processes. */
    void resume(TaskContext task) {
      task.resume(source);
    }
  }

  PythonBatch(StructType value, KeyKind key) {
    this.key = key;
    StructType header = new StructType().add("name", DataTypes.StringType).add("value", DataTypes.BinaryType);
    type = new StructType()
        .add("value", value)
        .add("key", key.type())
        .add("timestamp", DataTypes.LongType)
        .add("headers", DataTypes.createArrayType(header))
        .add("topic", DataTypes.StringType)
        .add("partition", DataTypes.IntegerType)
        .add("offset", DataTypes.LongType)
        .add("slot", DataTypes.IntegerType);
  }

  boolean isEmpty() {
    return causes == null || causes.isEmpty();
  }

  /** The records that wait, in their order. */
  List<Cause> causes() {
    open();
    return causes;
  }

  /** Adds a record with a number; returns true if the batch is full. */
  boolean add(StreamRecord record, ConsumerRecord<byte[], byte[]> source, int slot) {
    open();
    rows.add(new GenericInternalRow(new Object[] {
        record.value(), record.key() == null ? null : key.read(record.key()), record.time(),
        record.headers().length == 0 ? null : RecordFields.headers(record.headers()),
        record.topic() == null ? null : UTF8String.fromString(record.topic()),
        record.partition(), record.offset(), slot}));
    causes.add(new Cause(record, source));
    bytes += record.value() == null ? 0 : ((UnsafeRow) record.value()).getSizeInBytes();
    return causes.size() >= MOST || bytes >= Limits.BATCH_BYTES;
  }

  private void open() {
    if (rows == null) {
      rows = new ArrowRows(type);
      causes = new ArrayList<>();
    }
  }

  /** The records as a stream of Arrow; none waits any more. */
  byte[] take() {
    open();
    causes = new ArrayList<>();
    bytes = 0;
    return rows.take();
  }

  /** Forgets the records that wait, which belong to a batch that was given up. */
  void clear() {
    if (!isEmpty()) {
      causes.clear();
      bytes = 0;
      rows.clear();
    }
  }

  @Override
  public void close() {
    if (rows != null) {
      rows.close();
      rows = null;
      causes = null;
    }
  }
}
