package jmsbridge.kafka;

import static jmsbridge.kafka.ReadOnly.changed;
import static jmsbridge.kafka.ReadOnly.kept;
import static jmsbridge.kafka.ReadOnly.mistyped;

import java.nio.ByteBuffer;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.utils.Utils;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.BinaryView;
import org.apache.spark.unsafe.types.CalendarInterval;
import org.apache.spark.unsafe.types.TimestampNanosVal;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.unsafe.types.VariantVal;

/**
 * Row over the record that a reader has read last, with the columns of Spark's Kafka source: key, value, topic,
 * partition, offset, timestamp, timestampType and, if requested, headers (null for none).
 *
 * <p>A column is made when it is asked for; value and headers that no expression asks for are never copied. The object
 * serves all records of a reader, so a row is used before the next record is read: {@link #copy} throws, which stops an
 * operator that would collect rows. Spark's own projections copy the columns that they need.
 */
final class RecordRow extends InternalRow {
  private static final long serialVersionUID = 1L;
  private static final int KEY = 0;
  private static final int VALUE = 1;
  private static final int TOPIC = 2;
  private static final int PARTITION = 3;
  private static final int OFFSET = 4;
  private static final int TIMESTAMP = 5;
  private static final int TIMESTAMP_TYPE = 6;
  private static final int HEADERS = 7;

  private final transient UTF8String topic;
  private final int partition;
  private final boolean hasHeaders;
  private final transient HeaderArray headers = new HeaderArray();
  private transient ConsumerRecord<ByteBuffer, ByteBuffer> record;
  private transient byte[] value;

  RecordRow(TopicPartition partition, boolean hasHeaders) {
    topic = UTF8String.fromString(partition.topic());
    this.partition = partition.partition();
    this.hasHeaders = hasHeaders;
  }

  void set(ConsumerRecord<ByteBuffer, ByteBuffer> record) {
    this.record = record;
    value = null;
    if (hasHeaders) {
      headers.set(record.headers().toArray());
    }
  }

  /** The record itself. */
  ConsumerRecord<ByteBuffer, ByteBuffer> record() {
    return record;
  }

  /** The record's headers, under names that need no decoding. */
  Header[] headers() {
    return headers.named();
  }

  /** Text of the record's first header of that name; null without one or its value. */
  String header(UTF8String name) {
    UTF8String text = headers.text(headers.find(name).index());
    return text == null ? null : text.toString();
  }

  /** The record's value; the same array at each call. */
  byte[] value() {
    if (value == null && record.value() != null) {
      value = Utils.toArray(record.value());
    }
    return value;
  }

  @Override
  public int numFields() {
    return hasHeaders ? HEADERS + 1 : HEADERS;
  }

  @Override
  public boolean isNullAt(int field) {
    return switch (field) {
      case KEY -> record.key() == null;
      case VALUE -> record.value() == null;
      case HEADERS -> headers.numElements() == 0;
      default -> false;
    };
  }

  @Override
  public byte[] getBinary(int field) {
    return switch (field) {
      case KEY -> record.key() == null ? null : Utils.toArray(record.key());
      case VALUE -> value();
      default -> throw mistyped(field);
    };
  }

  @Override
  public BinaryView getBinaryView(int field) {
    byte[] bytes = getBinary(field);
    return bytes == null ? null : BinaryView.fromBytes(bytes);
  }

  @Override
  public UTF8String getUTF8String(int field) {
    if (field != TOPIC) {
      throw mistyped(field);
    }
    return topic;
  }

  @Override
  public int getInt(int field) {
    return switch (field) {
      case PARTITION -> partition;
      case TIMESTAMP_TYPE -> record.timestampType().id;
      default -> throw mistyped(field);
    };
  }

  @Override
  public long getLong(int field) {
    return switch (field) {
      case OFFSET -> record.offset();
      case TIMESTAMP -> TimeUnit.MILLISECONDS.toMicros(record.timestamp());
      default -> throw mistyped(field);
    };
  }

  @Override
  public ArrayData getArray(int field) {
    if (field != HEADERS) {
      throw mistyped(field);
    }
    return headers;
  }

  @Override
  public Object get(int field, DataType type) {
    if (isNullAt(field)) {
      return null;
    }
    return switch (field) {
      case KEY, VALUE -> getBinary(field);
      case TOPIC -> topic;
      case PARTITION, TIMESTAMP_TYPE -> getInt(field);
      case OFFSET, TIMESTAMP -> getLong(field);
      case HEADERS -> headers;
      default -> throw mistyped(field);
    };
  }

  /** Throws: only the record that was read last is there. */
  @Override
  public InternalRow copy() {
    throw kept();
  }

  @Override
  public void setNullAt(int field) {
    throw changed();
  }

  @Override
  public void update(int field, Object value) {
    throw changed();
  }

  @Override
  public boolean getBoolean(int field) {
    throw mistyped(field);
  }

  @Override
  public byte getByte(int field) {
    throw mistyped(field);
  }

  @Override
  public short getShort(int field) {
    throw mistyped(field);
  }

  @Override
  public float getFloat(int field) {
    throw mistyped(field);
  }

  @Override
  public double getDouble(int field) {
    throw mistyped(field);
  }

  @Override
  public Decimal getDecimal(int field, int precision, int scale) {
    throw mistyped(field);
  }

  @Override
  public CalendarInterval getInterval(int field) {
    throw mistyped(field);
  }

  @Override
  public TimestampNanosVal getTimestampNTZNanos(int field) {
    throw mistyped(field);
  }

  @Override
  public TimestampNanosVal getTimestampLTZNanos(int field) {
    throw mistyped(field);
  }

  @Override
  public VariantVal getVariant(int field) {
    throw mistyped(field);
  }

  @Override
  public InternalRow getStruct(int field, int fields) {
    throw mistyped(field);
  }

  @Override
  public MapData getMap(int field) {
    throw mistyped(field);
  }
}
