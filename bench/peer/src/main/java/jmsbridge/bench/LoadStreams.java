package jmsbridge.bench;

import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Fills the input topics of the topologies of `bench/stream_topologies.py`, a millisecond between two records.
 *
 * <p>Arguments: bootstrap= prefix= records= keys= [updates=]. With `updates` it fills the topic of events alone, and that
 * many further events have keys at random.
 */
public final class LoadStreams {
    private static final long BEGIN = 1_700_000_000_000L;
    /** Keys of the topic whose keys have ten records in each second. */
    private static final long FEW = 100;

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
        long records = given.number("records");
        long keys = given.number("keys");
        String updates = given.text("updates", "");
        load.events(records, keys);
        if (updates.isEmpty()) {
            load.others(records, keys);
        } else {
            load.updates(records, Long.parseLong(updates), keys);
        }
        load.producer.close();
        if (load.failure.get() != null) throw new IllegalStateException("Kafka refused a record", load.failure.get());
    }

    private void events(long records, long keys) {
        for (long at = 0; at < records; at++) event(at, at % keys);
    }

    private void updates(long from, long updates, long keys) {
        var random = new SplittableRandom(1);
        for (long at = from; at < from + updates; at++) event(at, random.nextLong(keys));
    }

    private void event(long at, long key) {
        send(event(prefix + "events", at, key, BEGIN + at));
    }

    /** The event number {@code at}. */
    static ProducerRecord<byte[], byte[]> event(String topic, long at, long key, long time) {
        return record(topic, key, time, "{\"n\":" + at + ",\"amount\":" + at % 1000 + "}");
    }

    private void others(long records, long keys) {
        for (long at = 0; at < records; at++) send(event(prefix + "few", at, at % FEW, BEGIN + at));
        for (long key = 0; key < keys; key++) {
            send("names", key, BEGIN - 1, "{\"name\":\"name " + key + "\"}");
        }
        for (long at = 0; at < records / 2; at++) {
            send("left", at, BEGIN + at, "{\"l\":" + at + "}");
            send("right", at, BEGIN + at + at * 7919 % 15_000, "{\"r\":" + at + "}");
        }
    }

    private void send(String topic, long key, long time, String value) {
        send(record(prefix + topic, key, time, value));
    }

    private static ProducerRecord<byte[], byte[]> record(String topic, long key, long time, String value) {
        byte[] name = ("k" + key).getBytes(StandardCharsets.US_ASCII);
        return new ProducerRecord<>(topic, null, time, name, value.getBytes(StandardCharsets.US_ASCII));
    }

    private void send(ProducerRecord<byte[], byte[]> record) {
        if (failure.get() != null) return;
        producer.send(record, (metadata, error) -> {
            if (error != null) failure.compareAndSet(null, error);
        });
    }
}
