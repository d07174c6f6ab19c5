package jmsbridge.streams;

import org.apache.kafka.clients.producer.ProducerRecord;

/** A result that Kafka would not take; the message names its topic and the cause. */
final class UnpublishableException extends EvaluationException {
  private static final long serialVersionUID = 1L;

  final transient ProducerRecord<byte[], byte[]> result;

  UnpublishableException(String why, ProducerRecord<byte[], byte[]> result) {
    super(new IllegalArgumentException(why));
    this.result = result;
  }
}
