package jmsbridge.bench;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

import static java.nio.charset.StandardCharsets.US_ASCII;

/**
 * Sends to the journal at an even rate and takes what comes out, each on its own thread; the send time travels in a
 * header, and both ends read one monotonic clock.
 *
 * <p>Arguments: bootstrap= journal= outputs=TOPIC,… rate= seconds= [keys=] [samples=FILE [isolation=]]. With `keys` it
 * sends events of that many keys in turn, as {@link LoadStreams} does, in the place of messages. With `samples` it reads
 * the outputs, committed records alone if `isolation` is `read_committed`, and writes one line for each,
 * `send time in epoch microseconds,latency in microseconds`, and fails if any is missing ten seconds after the last was
 * sent. Prints `sending` once it has begun.
 */
public final class Paced {
    private static final String SENT = "jms.sent";
    private static final long PATIENCE_NANOS = 10_000_000_000L;

    private final long epochMicrosAtZero = System.currentTimeMillis() * 1000 - System.nanoTime() / 1000;
    private final AtomicReference<Exception> failure = new AtomicReference<>();
    private final AtomicLong received = new AtomicLong();
    private volatile long expected = Long.MAX_VALUE;
    private volatile long deadline = Long.MAX_VALUE;

    private Paced() {}

    public static void main(String[] arguments) throws Exception {
        Arguments given = new Arguments(arguments);
        String samples = given.text("samples", "");
        Paced paced = new Paced();
        if (samples.isEmpty()) {
            paced.send(given);
            return;
        }
        try (var consumer = paced.consumer(given)) {
            Thread taking = new Thread(() -> paced.take(consumer, Path.of(samples)), "take");
            taking.start();
            paced.send(given);
            taking.join();
        }
        if (paced.received.get() != paced.expected) {
            throw new IllegalStateException("sent " + paced.expected + ", received " + paced.received.get());
        }
    }

    private void send(Arguments given) throws Exception {
        String journal = given.text("journal");
        long rate = given.number("rate");
        long count = rate * given.number("seconds");
        long keys = Long.parseLong(given.text("keys", "0"));
        Map<String, Object> settings =
            Map.of("bootstrap.servers", given.text("bootstrap"), "linger.ms", 0, "acks", "all");
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.partitionsFor(journal);
            System.out.println("sending");
            long start = System.nanoTime();
            for (long nth = 0; nth < count && failure.get() == null; nth++) {
                long due = start + nth * 1_000_000_000L / rate;
                while (System.nanoTime() < due) LockSupport.parkNanos(due - System.nanoTime());
                var record = keys == 0 ? Workload.record(journal, Workload.routedIndex(nth))
                    : LoadStreams.event(journal, nth, nth % keys, System.currentTimeMillis());
                record.headers().add(SENT, Long.toString(System.nanoTime()).getBytes(US_ASCII));
                producer.send(record, (metadata, error) -> {
                    if (error != null) failure.compareAndSet(null, error);
                });
            }
        }
        deadline = System.nanoTime() + PATIENCE_NANOS;
        expected = count;
        if (failure.get() != null) throw failure.get();
    }

    private KafkaConsumer<byte[], byte[]> consumer(Arguments given) {
        Map<String, Object> settings = Map.of("bootstrap.servers", given.text("bootstrap"),
            "isolation.level", given.text("isolation", "read_uncommitted"));
        var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        List<TopicPartition> partitions = new ArrayList<>();
        for (String topic : given.list("outputs")) {
            consumer.partitionsFor(topic).forEach(info -> partitions.add(new TopicPartition(topic, info.partition())));
        }
        consumer.assign(partitions);
        consumer.seekToEnd(partitions);
        partitions.forEach(consumer::position);
        return consumer;
    }

    private void take(KafkaConsumer<byte[], byte[]> consumer, Path samples) {
        try (PrintWriter lines = new PrintWriter(Files.newBufferedWriter(samples))) {
            while (received.get() < expected && System.nanoTime() < deadline) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                    long now = System.nanoTime();
                    long sent = Long.parseLong(new String(record.headers().lastHeader(SENT).value(), US_ASCII));
                    lines.println((epochMicrosAtZero + sent / 1000) + "," + (now - sent) / 1000);
                    received.incrementAndGet();
                }
            }
        } catch (IOException | RuntimeException error) {
            failure.compareAndSet(null, error);
        }
    }
}
