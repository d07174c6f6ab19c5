package jmsbridge.streams;

import java.nio.ByteBuffer;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;

/**
 * Passage to an aggregate behind an internal topic, of which only the results of many records count: sends the buffer of
 * the records of a key that the task has met, with their number, instead of each record.
 *
 * <p>With windows, what waits is of one slice of time. So a record comes behind all that are before it and of another
 * slice, and is late behind the topic if it would be without this.
 */
final class Combine extends Node {
  private static final long serialVersionUID = 1L;
  private static final long MOST_BYTES = 8 << 20;
  /** Bytes that the JVM takes for a buffer beside its key and its own. */
  private static final int ENTRY_BYTES = 250;

  private static final class Waiting {
    private UnsafeRow buffer;
    private long records;
    private long latest = StreamRecord.NO_TIME;
    private Header[] headers;
    /** The record of a topic that the latest one comes from. */
    private ConsumerRecord<byte[], byte[]> from;
  }

  private final String topic;
  private final String aggregate;
  private final Aggregator aggregator;
  private final WindowGrid grid;
  private final Map<ByteBuffer, Waiting> waiting = new LinkedHashMap<>();
  private long bytes;
  /** Beginning of the slice of time of what waits. */
  private long slice;

  /** Creates the passage to the node {@code aggregate}; {@code grid} has its windows, and is null if it has none. */
  Combine(String name, StructType type, String topic, String aggregate, Aggregator aggregator, WindowGrid grid) {
    super(name, type);
    this.topic = topic;
    this.aggregate = aggregate;
    this.aggregator = aggregator;
    this.grid = grid;
  }

  @Override
  void process(StreamRecord record, int port) {
    if (record.key() == null || record.value() == null) {
      task.count(record.key() == null ? name : aggregate, record.key() == null ? "null_keys" : "null_values");
      return;
    }
    if (!task.collects()) {
      // A record that is repeated for the state alone does not meet others.
      flush();
    }
    try {
      add(record);
    } catch (EvaluationException failure) {
      task.reject(aggregate, record, failure);
    }
    if (!task.collects() || bytes > MOST_BYTES) {
      flush();
    }
  }

  private void add(StreamRecord record) {
    if (grid != null) {
      begin(record.time());
    }
    ByteBuffer key = ByteBuffer.wrap(record.key());
    Waiting partial = waiting.get(key);
    UnsafeRow buffer = aggregator.add(partial == null ? aggregator.empty() : partial.buffer, record);
    if (partial == null) {
      partial = new Waiting();
      waiting.put(key, partial);
      bytes += record.key().length + ENTRY_BYTES;
    } else {
      bytes -= partial.buffer.getSizeInBytes();
    }
    bytes += buffer.getSizeInBytes();
    partial.buffer = buffer;
    partial.records++;
    partial.latest = Math.max(partial.latest, record.time());
    partial.headers = record.headers();
    partial.from = task.current();
  }

  /** Goes on with the slice of a time. */
  private void begin(long time) {
    if (time == StreamRecord.NO_TIME) {
      throw EvaluationException.noTime();
    }
    long own = grid.slice(time);
    if (own != slice) {
      flush();
      slice = own;
    }
  }

  @Override
  void flush() {
    if (waiting.isEmpty()) {
      return;
    }
    ConsumerRecord<byte[], byte[]> current = task.current();
    waiting.forEach((key, partial) -> {
      task.resume(partial.from);
      byte[] value = Partial.bytes(aggregator.fingerprint(), partial.records, partial.buffer);
      // The results of windows have no headers.
      Header[] headers = grid == null ? partial.headers : StreamRecord.NO_HEADERS;
      try {
        task.send(topic, key.array(), value, partial.latest, headers);
      } catch (EvaluationException failure) {
        task.reject(name, StreamRecord.of(key.array(), null, partial.latest), failure);
      }
    });
    waiting.clear();
    bytes = 0;
    task.resume(current);
  }
}
