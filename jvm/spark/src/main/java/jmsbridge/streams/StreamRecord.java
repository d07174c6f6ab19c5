package jmsbridge.streams;

import org.apache.kafka.common.header.Header;
import org.apache.spark.sql.catalyst.InternalRow;

/**
 * A record between two nodes: a key as bytes, typed fields, a time, and where it was read.
 *
 * @param key the key as it is in Kafka; null: none
 * @param value fields of the value; null: a tombstone
 * @param before in a table, the fields that the value replaces; null: none
 * @param time milliseconds since 1970; {@link #NO_TIME}: none
 */
record StreamRecord(
    byte[] key, InternalRow value, InternalRow before, long time, Header[] headers, String topic, int partition,
    long offset) {
  /** In the place of the time of a record that has none, as in Kafka. All negative times are taken for it. */
  static final long NO_TIME = -1;
  static final Header[] NO_HEADERS = {};

  /** A record that no single record of a topic has caused. */
  static StreamRecord of(byte[] key, InternalRow value, long time) {
    return new StreamRecord(key, value, null, time, NO_HEADERS, null, 0, 0);
  }

  StreamRecord withKey(byte[] newKey) {
    return new StreamRecord(newKey, value, before, time, headers, topic, partition, offset);
  }

  StreamRecord withValue(InternalRow newValue) {
    return new StreamRecord(key, newValue, null, time, headers, topic, partition, offset);
  }

  StreamRecord withChange(InternalRow now, InternalRow former) {
    return new StreamRecord(key, now, former, time, headers, topic, partition, offset);
  }

  StreamRecord withHeaders(Header[] newHeaders) {
    return new StreamRecord(key, value, before, time, newHeaders, topic, partition, offset);
  }

  StreamRecord withTime(long newTime) {
    return new StreamRecord(key, value, before, newTime, headers, topic, partition, offset);
  }
}
