package jmsbridge.kafka;

import java.nio.ByteBuffer;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeArrayWriter;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Row of a record with the columns of Spark's Kafka source: key, value, topic, partition, offset, timestamp,
 * timestampType and, if requested, headers (null for none). Each record is written into the same buffer; only header
 * keys need an object.
 */
final class RecordRow {
  private static final int KEY = 0;
  private static final int VALUE = 1;
  private static final int TOPIC = 2;
  private static final int PARTITION = 3;
  private static final int OFFSET = 4;
  private static final int TIMESTAMP = 5;
  private static final int TIMESTAMP_TYPE = 6;
  private static final int HEADERS = 7;

  private static final int INITIAL_BYTES = 2048;
  private static final int REFERENCE_BYTES = 8;

  private final UTF8String topic;
  private final int partition;
  private final boolean headers;
  private final UnsafeRowWriter row;
  private final UnsafeArrayWriter array;
  private final UnsafeRowWriter header;

  RecordRow(TopicPartition partition, boolean headers) {
    topic = UTF8String.fromString(partition.topic());
    this.partition = partition.partition();
    this.headers = headers;
    row = new UnsafeRowWriter(headers ? HEADERS + 1 : HEADERS, INITIAL_BYTES);
    array = new UnsafeArrayWriter(row, REFERENCE_BYTES);
    header = new UnsafeRowWriter(array, 2);
  }

  UnsafeRow get() {
    return row.getRow();
  }

  void set(ConsumerRecord<ByteBuffer, ByteBuffer> record) {
    row.reset();
    row.zeroOutNullBytes();
    write(KEY, record.key());
    write(VALUE, record.value());
    row.write(TOPIC, topic);
    row.write(PARTITION, partition);
    row.write(OFFSET, record.offset());
    row.write(TIMESTAMP, TimeUnit.MILLISECONDS.toMicros(record.timestamp()));
    row.write(TIMESTAMP_TYPE, record.timestampType().id);
    if (headers) {
      write(record.headers().toArray());
    }
  }

  private void write(int field, ByteBuffer bytes) {
    if (bytes == null) {
      row.setNullAt(field);
    } else {
      row.write(field, bytes.array(), bytes.arrayOffset() + bytes.position(), bytes.remaining());
    }
  }

  private void write(Header[] all) {
    if (all.length == 0) {
      row.setNullAt(HEADERS);
      return;
    }
    int start = row.cursor();
    array.initialize(all.length);
    for (int index = 0; index < all.length; index++) {
      int from = array.cursor();
      header.resetRowWriter();
      header.write(0, UTF8String.fromString(all[index].key()));
      byte[] value = all[index].value();
      if (value == null) {
        header.setNullAt(1);
      } else {
        header.write(1, value);
      }
      array.setOffsetAndSizeFromPreviousCursor(index, from);
    }
    row.setOffsetAndSizeFromPreviousCursor(HEADERS, start);
  }
}
