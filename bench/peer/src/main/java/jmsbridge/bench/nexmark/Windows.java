package jmsbridge.bench.nexmark;

import java.time.Duration;
import java.util.Arrays;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;

/** Queries with windows. Tasks do not wait for one another, so the grace is longer than the time of all events. */
final class Windows {
    static final Duration GRACE = Duration.ofDays(2);
    static final long SIZE = 10_000;
    private static final Duration TEN_SECONDS = Duration.ofMillis(SIZE);

    private Windows() {}

    static KStream<byte[], byte[]> q5(KStream<byte[], byte[]> events) {
        var counted = Materialized.<Long, Long, WindowStore<Bytes, byte[]>>with(Forms.LONG, Forms.LONG)
            .withCachingEnabled();
        return Simple.bids(events, false).map((key, bid) -> KeyValue.pair(bid.auction(), bid.bidder()))
            .groupByKey(Grouped.with(Forms.LONG, Forms.LONG))
            .windowedBy(TimeWindows.ofSizeAndGrace(TEN_SECONDS, GRACE).advanceBy(Duration.ofSeconds(2)))
            .count(counted).toStream()
            .map((key, count) -> KeyValue.pair(key.window().start(), new long[] {count, key.key()}))
            .groupByKey(Grouped.with(Forms.LONG, Forms.LONGS))
            .aggregate(() -> new long[] {0}, (start, auction, most) -> most(most, auction),
                Simple.stored(Forms.LONG, Forms.LONGS))
            .toStream().map((start, most) -> KeyValue.pair(Simple.key(start), new Json().number("starttime", start)
                .raw("auctions", LongStream.of(most).skip(1).mapToObj(Long::toString)
                    .collect(Collectors.joining(",", "[", "]")))
                .number("num", most[0]).bytes()));
    }

    /** The greatest count and the auctions with it; counts of an auction only grow. */
    private static long[] most(long[] most, long[] auction) {
        if (auction[0] < most[0]) return most;
        if (auction[0] > most[0]) return auction;
        for (int at = 1; at < most.length; at++) if (most[at] == auction[1]) return most;
        long[] more = Arrays.copyOf(most, most.length + 1);
        more[most.length] = auction[1];
        return more;
    }

    static KStream<byte[], byte[]> q7(StreamsBuilder builder, KStream<byte[], byte[]> events) {
        builder.addStateStore(Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore("best"), Forms.LONG, Forms.LONG));
        return Simple.bids(events, true).process(HighestOfTask::new, "best")
            .groupByKey(Grouped.with(Forms.LONG, Forms.BID))
            .reduce((before, bid) -> bid.price() > before.price() ? bid : before, Simple.stored(Forms.LONG, Forms.BID))
            .toStream().map((window, bid) -> KeyValue.pair(Simple.key(window), bid.write("").bytes()));
    }

    /** Passes bids that are the highest of their window so far, under the window, before records go to another task. */
    private static final class HighestOfTask implements Processor<byte[], Bid, Long, Bid> {
        private ProcessorContext<Long, Bid> context;
        private KeyValueStore<Long, Long> best;

        @Override
        public void init(ProcessorContext<Long, Bid> owner) {
            context = owner;
            best = owner.getStateStore("best");
        }

        @Override
        public void process(Record<byte[], Bid> record) {
            long window = record.value().time() / SIZE;
            Long before = best.get(window);
            if (before != null && before >= record.value().price()) return;
            best.put(window, record.value().price());
            best.delete(window - GRACE.toMillis() / SIZE);
            context.forward(record.withKey(window));
        }
    }

    static KStream<byte[], byte[]> q11(KStream<byte[], byte[]> events) {
        var counted = Materialized.<Long, Long, SessionStore<Bytes, byte[]>>with(Forms.LONG, Forms.LONG)
            .withCachingEnabled();
        return Simple.bids(events, false).map((key, bid) -> KeyValue.pair(bid.bidder(), bid.auction()))
            .groupByKey(Grouped.with(Forms.LONG, Forms.LONG))
            .windowedBy(SessionWindows.ofInactivityGapAndGrace(TEN_SECONDS, GRACE))
            .count(counted).toStream()
            .map((key, count) -> KeyValue.pair(Simple.key(key.key() + " " + key.window().start() + " " + key.window().end()),
                count == null ? null : new Json().number("bidder", key.key()).number("bid_count", count)
                    .number("starttime", key.window().start()).number("endtime", key.window().end() + SIZE).bytes()));
    }

    static KStream<byte[], byte[]> q12(KStream<byte[], byte[]> events) {
        var counted = Materialized.<Long, Long, WindowStore<Bytes, byte[]>>with(Forms.LONG, Forms.LONG)
            .withCachingEnabled();
        return Simple.bids(events, false).map((key, bid) -> KeyValue.pair(bid.bidder(), bid.auction()))
            .groupByKey(Grouped.with(Forms.LONG, Forms.LONG))
            .windowedBy(TimeWindows.ofSizeAndGrace(TEN_SECONDS, TEN_SECONDS))
            .count(counted).toStream()
            .map((key, count) -> KeyValue.pair(Simple.key(key.key() + " " + key.window().start()),
                new Json().number("bidder", key.key()).number("bid_count", count).bytes()));
    }
}
