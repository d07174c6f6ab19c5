package jmsbridge.bench;

import java.time.Duration;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.zip.CRC32C;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

import static java.nio.charset.StandardCharsets.UTF_8;

/**
 * Reads every record of the output topics and prints, as one JSON object: how many each topic holds, how many are in
 * the wrong topic, repeat a journal position, or lack origin, position or the right key; and when (by the broker's
 * clock, so the topics must have LogAppendTime) the first, the `warm`th and the last was appended. `digest` is one of
 * keys and bodies by topic, whatever the order of the records.
 *
 * <p>Arguments: bootstrap= outputs=TOPIC,… (in the order of the routes; then again, for their second destinations)
 * origin= warm=
 */
public final class Verify {
    private final List<String> outputs;
    private final byte[] origin;
    private final Map<String, BitSet> positions = new HashMap<>();
    private final TreeMap<Long, Long> appended = new TreeMap<>();
    private final Map<String, Long> counts = new TreeMap<>();
    private long misrouted, repeated, unmarked, wrongKey, digest;

    private Verify(List<String> outputs, String origin) {
        this.outputs = outputs;
        this.origin = origin.getBytes(UTF_8);
        outputs.forEach(topic -> counts.put(topic, 0L));
    }

    public static void main(String[] arguments) {
        Arguments given = new Arguments(arguments);
        Verify verify = new Verify(given.list("outputs"), given.text("origin"));
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", given.text("bootstrap"), "max.poll.records", 5000,
            "max.partition.fetch.bytes", 8 << 20, "isolation.level", "read_committed");
        try (var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            verify.readAll(consumer);
        }
        System.out.println(verify.json(given.number("warm")));
    }

    private void readAll(KafkaConsumer<byte[], byte[]> consumer) {
        List<TopicPartition> partitions = new ArrayList<>();
        for (String topic : outputs) {
            consumer.partitionsFor(topic).forEach(info -> partitions.add(new TopicPartition(topic, info.partition())));
        }
        consumer.assign(partitions);
        consumer.seekToBeginning(partitions);
        Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
        while (partitions.stream().anyMatch(partition -> consumer.position(partition) < ends.get(partition))) {
            consumer.poll(Duration.ofSeconds(1)).forEach(this::take);
        }
    }

    private void take(ConsumerRecord<byte[], byte[]> record) {
        counts.merge(record.topic(), 1L, Long::sum);
        appended.merge(record.timestamp(), 1L, Long::sum);
        String address = text(record, "jms.JMSDestination").substring("queue:".length());
        int route = Workload.route(address, text(record, "jms.region"));
        int output = outputs.indexOf(record.topic());
        if (output % Workload.ROUTE_COUNT != route) misrouted++;
        digest += digest(output, record.key(), record.value());
        if (!java.util.Arrays.equals(record.key(), record.headers().lastHeader("jms.JMSCorrelationID").value())) wrongKey++;
        var mark = record.headers().lastHeader("jmsbridge.origin");
        String position = text(record, "jmsbridge.position");
        if (mark == null || !java.util.Arrays.equals(mark.value(), origin) || position == null) {
            unmarked++;
            return;
        }
        String[] place = position.split(":");
        String copy = place[0] + ":" + place[1] + ":" + output / Workload.ROUTE_COUNT;
        BitSet seen = positions.computeIfAbsent(copy, partition -> new BitSet());
        int offset = Integer.parseInt(place[2]);
        if (seen.get(offset)) repeated++;
        seen.set(offset);
    }

    private static long digest(int output, byte[] key, byte[] body) {
        CRC32C of = new CRC32C();
        of.update(output);
        of.update(key);
        long first = of.getValue();
        of.update(body);
        long both = (first << 32 | of.getValue()) * 0x9E3779B97F4A7C15L;
        return (both ^ both >>> 29) * 0xBF58476D1CE4E5B9L;
    }

    private static String text(ConsumerRecord<byte[], byte[]> record, String header) {
        var found = record.headers().lastHeader(header);
        return found == null ? null : new String(found.value(), UTF_8);
    }

    private String json(long warm) {
        long sofar = 0;
        long warmAt = 0;
        long steady = 0;
        for (var moment : appended.entrySet()) {
            if (sofar >= warm) steady += moment.getValue();
            else warmAt = moment.getKey();
            sofar += moment.getValue();
        }
        StringBuilder topics = new StringBuilder();
        counts.forEach((topic, count) -> topics.append(topics.length() > 0 ? "," : "").append('"').append(topic).append("\":").append(count));
        return String.format(
            "{\"topics\":{%s},\"misrouted\":%d,\"repeated\":%d,\"unmarked\":%d,\"wrong_key\":%d,"
                + "\"first_ms\":%d,\"warm_ms\":%d,\"last_ms\":%d,\"steady\":%d,\"digest\":\"%016x\"}",
            topics, misrouted, repeated, unmarked, wrongKey,
            appended.isEmpty() ? 0 : appended.firstKey(), warmAt, appended.isEmpty() ? 0 : appended.lastKey(), steady,
            digest);
    }
}
