package jmsbridge.find;

import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Comparator;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.utils.Utils;

/** A record that was found. */
record Hit(Place place, byte[] key, byte[] value, Header[] headers) {
  private static final int NONE = -1;

  /** Time and position of a record; the newest comes first. */
  record Place(long time, String topic, int partition, long offset) implements Comparable<Place> {
    private static final Comparator<Place> ORDER = Comparator.comparingLong(Place::time).reversed()
        .thenComparing(Place::topic)
        .thenComparingInt(Place::partition)
        .thenComparing(Comparator.comparingLong(Place::offset).reversed());

    static Place of(ConsumerRecord<?, ?> record) {
      return new Place(record.timestamp(), record.topic(), record.partition(), record.offset());
    }

    @Override
    public int compareTo(Place other) {
      return ORDER.compare(this, other);
    }
  }

  static Hit of(Place place, ConsumerRecord<ByteBuffer, ByteBuffer> record) {
    return new Hit(place, bytes(record.key()), bytes(record.value()), record.headers().toArray());
  }

  /** Bytes of key, value and headers. A header that was asked for its bytes no longer holds Kafka's buffer. */
  long size() {
    long size = length(key) + length(value);
    for (Header header : headers) {
      size += header.key().length() + length(header.value());
    }
    return size;
  }

  void write(DataOutputStream out) throws IOException {
    write(out, place.topic.getBytes(StandardCharsets.UTF_8));
    out.writeInt(place.partition);
    out.writeLong(place.offset);
    out.writeLong(place.time);
    write(out, key);
    write(out, value);
    out.writeInt(headers.length);
    for (Header header : headers) {
      write(out, header.key().getBytes(StandardCharsets.UTF_8));
      write(out, header.value());
    }
  }

  private static byte[] bytes(ByteBuffer buffer) {
    return buffer == null ? null : Utils.toArray(buffer);
  }

  private static long length(byte[] bytes) {
    return bytes == null ? 0 : bytes.length;
  }

  private static void write(DataOutputStream out, byte[] bytes) throws IOException {
    out.writeInt(bytes == null ? NONE : bytes.length);
    if (bytes != null) {
      out.write(bytes);
    }
  }
}
