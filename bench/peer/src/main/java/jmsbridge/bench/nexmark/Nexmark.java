package jmsbridge.bench.nexmark;

import java.util.Properties;
import jmsbridge.bench.Arguments;
import jmsbridge.bench.Running;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.WallclockTimestampExtractor;

/**
 * The queries of `bench/nexmark/queries.py` as Kafka Streams programs, exactly once, with caches in front of all stores.
 *
 * <p>Arguments: bootstrap= application= query= input= output= state= threads=.
 */
public final class Nexmark {
    private Nexmark() {}

    public static void main(String[] arguments) throws InterruptedException {
        Arguments given = new Arguments(arguments);
        StreamsBuilder builder = new StreamsBuilder();
        String query = given.text("query");
        var consumed = Consumed.with(Forms.BYTES, Forms.BYTES);
        // Windows of q12 are of the time of processing.
        if (query.equals("q12")) consumed = consumed.withTimestampExtractor(new WallclockTimestampExtractor());
        var events = builder.stream(given.text("input"), consumed);
        results(query, builder, events).to(given.text("output"), Produced.with(Forms.BYTES, Forms.BYTES));
        Properties settings = settings(given);
        Running.run(builder.build(settings), settings);
    }

    private static KStream<byte[], byte[]> results(String query, StreamsBuilder builder, KStream<byte[], byte[]> events) {
        return switch (query) {
            case "q0" -> Simple.q0(events);
            case "q1" -> Simple.q1(events);
            case "q2" -> Simple.q2(events);
            case "q3" -> Joins.q3(events);
            case "q4" -> Joins.q4(events);
            case "q5" -> Windows.q5(events);
            case "q7" -> Windows.q7(builder, events);
            case "q8" -> Joins.q8(builder, events);
            case "q11" -> Windows.q11(events);
            case "q12" -> Windows.q12(events);
            case "q15" -> Totals.q15(builder, events);
            case "q16" -> Totals.q16(builder, events);
            case "q17" -> Simple.q17(events);
            case "q18" -> Simple.q18(events);
            case "q19" -> Simple.q19(events);
            case "q20" -> Joins.q20(events);
            default -> throw new IllegalArgumentException(query);
        };
    }

    private static Properties settings(Arguments given) {
        Properties settings = new Properties();
        settings.put("application.id", given.text("application"));
        settings.put("bootstrap.servers", given.text("bootstrap"));
        settings.put("state.dir", given.text("state"));
        settings.put("num.stream.threads", given.text("threads"));
        settings.put("processing.guarantee", "exactly_once_v2");
        settings.put("topology.optimization", "all");
        settings.put("commit.interval.ms", 1000);
        settings.put("consumer.auto.offset.reset", "earliest");
        settings.put("producer.linger.ms", 20);
        settings.put("producer.batch.size", 256 * 1024);
        settings.put("consumer.max.poll.records", 2000);
        settings.put("statestore.cache.max.bytes", 256 * 1024 * 1024);
        return settings;
    }
}
