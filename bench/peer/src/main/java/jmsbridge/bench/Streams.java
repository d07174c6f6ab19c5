package jmsbridge.bench;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;

/**
 * The topologies of `bench/stream_topologies.py` as Kafka Streams programs. Values are JSON of known form, which is cut
 * at known places instead of being parsed.
 *
 * <p>Arguments: bootstrap= application= topology=count|total|table|join|once prefix= guarantee= state= threads= linger=.
 */
public final class Streams {
    private static final Duration WITHIN = Duration.ofSeconds(10);
    private static final Duration ONCE_WITHIN = Duration.ofSeconds(15);
    private static final Duration GRACE = Duration.ofMinutes(1);

    private Streams() {}

    public static void main(String[] arguments) throws InterruptedException {
        Arguments given = new Arguments(arguments);
        StreamsBuilder builder = new StreamsBuilder();
        String prefix = given.text("prefix");
        KStream<byte[], byte[]> output = switch (given.text("topology")) {
            case "count" -> count(builder, prefix);
            case "total" -> total(builder, prefix);
            case "table" -> table(builder, prefix);
            case "join" -> join(builder, prefix);
            case "once" -> once(builder, prefix);
            default -> throw new IllegalArgumentException(given.text("topology"));
        };
        output.to(given.text("output"), Produced.with(Serdes.ByteArray(), Serdes.ByteArray()));
        Running.run(builder.build(), settings(given));
    }

    private static Properties settings(Arguments given) {
        Properties settings = new Properties();
        settings.put("application.id", given.text("application"));
        settings.put("bootstrap.servers", given.text("bootstrap"));
        settings.put("state.dir", given.text("state"));
        settings.put("num.stream.threads", given.text("threads"));
        settings.put("processing.guarantee", given.text("guarantee"));
        // One that starts after a kill gets its partitions at once, and not when Kafka has given the former one up.
        settings.put("group.instance.id", given.text("application"));
        settings.put("consumer.auto.offset.reset", "earliest");
        settings.put("producer.linger.ms", given.text("linger"));
        settings.put("producer.batch.size", 256 * 1024);
        settings.put("consumer.max.poll.records", 2000);
        settings.put("statestore.cache.max.bytes", 64 * 1024 * 1024);
        return settings;
    }

    private static KStream<byte[], byte[]> source(StreamsBuilder builder, String topic) {
        return builder.stream(topic, Consumed.with(Serdes.ByteArray(), Serdes.ByteArray()));
    }

    /** Counts by key and minute; without a cache, since each change is published. */
    private static KStream<byte[], byte[]> count(StreamsBuilder builder, String prefix) {
        var stored = Materialized.<Bytes, Long, WindowStore<Bytes, byte[]>>as("counts")
            .withKeySerde(Serdes.Bytes()).withValueSerde(Serdes.Long()).withCachingDisabled();
        return builder.stream(prefix + "events", Consumed.with(Serdes.Bytes(), Serdes.ByteArray()))
            .groupByKey(Grouped.with(Serdes.Bytes(), Serdes.ByteArray()))
            .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofMinutes(1), GRACE))
            .count(stored).toStream()
            .map((window, count) -> org.apache.kafka.streams.KeyValue.pair(window.key().get(),
                ("{\"start\":" + window.window().start() + ",\"count\":" + count + "}").getBytes(StandardCharsets.US_ASCII)));
    }

    /** Counts by key; without a cache, since each change is published. */
    private static KStream<byte[], byte[]> total(StreamsBuilder builder, String prefix) {
        var stored = Materialized.<Bytes, Long, KeyValueStore<Bytes, byte[]>>as("totals")
            .withKeySerde(Serdes.Bytes()).withValueSerde(Serdes.Long()).withCachingDisabled();
        return builder.stream(prefix + "events", Consumed.with(Serdes.Bytes(), Serdes.ByteArray()))
            .groupByKey(Grouped.with(Serdes.Bytes(), Serdes.ByteArray()))
            .count(stored).toStream()
            .map((key, count) -> org.apache.kafka.streams.KeyValue.pair(key.get(),
                ("{\"count\":" + count + "}").getBytes(StandardCharsets.US_ASCII)));
    }

    /** Joins with the present value of a table. */
    private static KStream<byte[], byte[]> table(StreamsBuilder builder, String prefix) {
        var stored = Materialized.<Bytes, byte[], KeyValueStore<Bytes, byte[]>>as("names")
            .withKeySerde(Serdes.Bytes()).withValueSerde(Serdes.ByteArray()).withCachingEnabled();
        var names = builder.table(prefix + "names", Consumed.with(Serdes.Bytes(), Serdes.ByteArray()), stored);
        return builder.stream(prefix + "events", Consumed.with(Serdes.Bytes(), Serdes.ByteArray()))
            .join(names, Streams::joined, Joined.with(Serdes.Bytes(), Serdes.ByteArray(), Serdes.ByteArray()))
            .map((key, value) -> org.apache.kafka.streams.KeyValue.pair(key.get(), value));
    }

    private static KStream<byte[], byte[]> join(StreamsBuilder builder, String prefix) {
        return source(builder, prefix + "left").join(source(builder, prefix + "right"), Streams::joined,
            JoinWindows.ofTimeDifferenceAndGrace(WITHIN, GRACE),
            StreamJoined.with(Serdes.ByteArray(), Serdes.ByteArray(), Serdes.ByteArray()));
    }

    /** The fields of two JSON objects in one. */
    private static byte[] joined(byte[] left, byte[] right) {
        byte[] joined = new byte[left.length + right.length - 1];
        System.arraycopy(left, 0, joined, 0, left.length - 1);
        joined[left.length - 1] = ',';
        System.arraycopy(right, 1, joined, left.length, right.length - 1);
        return joined;
    }

    /** Passes the first record of each key within fifteen seconds. */
    private static KStream<byte[], byte[]> once(StreamsBuilder builder, String prefix) {
        builder.addStateStore(Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore("seen"), Serdes.Bytes(),
            Serdes.Long()).withCachingEnabled());
        return source(builder, prefix + "events").process(Once::new, "seen");
    }

    private static final class Once implements Processor<byte[], byte[], byte[], byte[]> {
        private ProcessorContext<byte[], byte[]> context;
        private KeyValueStore<Bytes, Long> seen;

        @Override
        public void init(ProcessorContext<byte[], byte[]> owner) {
            context = owner;
            seen = owner.getStateStore("seen");
            owner.schedule(Duration.ofMinutes(5), PunctuationType.STREAM_TIME, this::purge);
        }

        @Override
        public void process(Record<byte[], byte[]> record) {
            Bytes key = Bytes.wrap(record.key());
            Long before = seen.get(key);
            if (before == null || Math.abs(record.timestamp() - before) >= ONCE_WITHIN.toMillis()) {
                seen.put(key, record.timestamp());
                context.forward(record);
            }
        }

        private void purge(long time) {
            try (KeyValueIterator<Bytes, Long> all = seen.all()) {
                while (all.hasNext()) {
                    var each = all.next();
                    if (each.value < time - 2 * ONCE_WITHIN.toMillis()) seen.delete(each.key);
                }
            }
        }
    }
}
