package jmsbridge.bench;

import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Fills the input topics of the topologies of `bench/stream_topologies.py`, a millisecond between two records.
 *
 * <p>Arguments: bootstrap= prefix= records= keys=.
 */
public final class LoadStreams {
    private static final long BEGIN = 1_700_000_000_000L;

    private final KafkaProducer<byte[], byte[]> producer;
    private final AtomicReference<Exception> failure = new AtomicReference<>();
    private final String prefix;

    private LoadStreams(String bootstrap, String prefix) {
        this.prefix = prefix;
        producer = new KafkaProducer<>(
            Map.of("bootstrap.servers", bootstrap, "linger.ms", 20, "batch.size", 512 * 1024, "acks", "all"),
            new ByteArraySerializer(), new ByteArraySerializer());
    }

    public static void main(String[] arguments) {
        Arguments given = new Arguments(arguments);
        LoadStreams load = new LoadStreams(given.text("bootstrap"), given.text("prefix"));
        load.all(given.number("records"), given.number("keys"));
        if (load.failure.get() != null) throw new IllegalStateException("Kafka refused a record", load.failure.get());
    }

    private void all(long records, long keys) {
        for (long key = 0; key < keys; key++) {
            send("names", key, BEGIN - 1, "{\"name\":\"name " + key + "\"}");
        }
        for (long at = 0; at < records; at++) {
            send("events", at % keys, BEGIN + at, "{\"n\":" + at + ",\"amount\":" + at % 1000 + "}");
        }
        for (long at = 0; at < records / 2; at++) {
            send("left", at, BEGIN + at, "{\"l\":" + at + "}");
            send("right", at, BEGIN + at + at * 7919 % 15_000, "{\"r\":" + at + "}");
        }
        producer.close();
    }

    private void send(String topic, long key, long time, String value) {
        if (failure.get() != null) return;
        byte[] name = ("k" + key).getBytes(StandardCharsets.US_ASCII);
        producer.send(new ProducerRecord<>(prefix + topic, null, time, name, value.getBytes(StandardCharsets.US_ASCII)),
            (metadata, error) -> {
                if (error != null) failure.compareAndSet(null, error);
            });
    }
}
