package jmsbridge.streams;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.Header;

/** Receiver of the records that a task publishes. */
interface Output {
  /** Says from which record of a topic the next outputs come; null: from the clock. */
  default void begin(ConsumerRecord<byte[], byte[]> record) {}

  /** Whether outputs that come now are not published, since they are repeated for the state alone. */
  default boolean isHeldBack() {
    return false;
  }

  void send(String topic, byte[] key, byte[] value, long time, Header[] headers);
}
