package jmsbridge.streams;

import org.apache.kafka.common.header.Header;

/** Receiver of the records that a task publishes. */
interface Output {
  void send(String topic, byte[] key, byte[] value, long time, Header[] headers);
}
