package jmsbridge.bench.nexmark;

import java.time.Duration;
import java.time.Instant;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.FixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorContext;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * Queries that count different bidders and auctions. Figures are twelve numbers: of bids, bidders and auctions, each of
 * all ranks and of the three; q16 has the latest time behind them. What was seen of an id is a bit for each rank.
 */
final class Totals {
    private static final String[] NAMES = {"bids", "bidders", "auctions"};
    private static final int FIGURES = 12;
    private static final long DAY = 86_400_000;
    private static final int BIDDERS = 0, AUCTIONS = 1, BIDS = 2;

    private Totals() {}

    /** Each task first counts its own bids and passes an id only with a rank that is new, since one task sums a day. */
    static KStream<byte[], byte[]> q15(StreamsBuilder builder, KStream<byte[], byte[]> events) {
        for (String name : new String[] {"task-seen", "seen"}) {
            builder.addStateStore(Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(name), Forms.LONGS, Forms.LONG)
                .withCachingEnabled());
        }
        builder.addStateStore(Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore("counts"), Forms.LONG, Forms.LONGS));
        return Simple.bids(events, false).process(OfTask::new, "task-seen", "counts")
            .repartition(Repartitioned.with(Forms.LONGS, Forms.LONGS))
            .process(OfDay::new, "seen")
            .groupByKey(Grouped.with(Forms.LONG, Forms.LONGS))
            .aggregate(() -> new long[FIGURES], (day, more, sums) -> sum(sums, more), Simple.stored(Forms.LONG, Forms.LONGS))
            .toStream().map((day, sums) -> KeyValue.pair(Simple.key(day),
                write(new Json().text("day", Simple.day(day * DAY)), sums).bytes()));
    }

    static KStream<byte[], byte[]> q16(StreamsBuilder builder, KStream<byte[], byte[]> events) {
        builder.addStateStore(Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore("seen"), Forms.TEXT, Forms.LONG)
            .withCachingEnabled());
        return Simple.bids(events, false)
            .map((key, bid) -> KeyValue.pair(bid.channel() + " " + bid.time() / DAY, bid.withoutText()))
            .repartition(Repartitioned.with(Forms.TEXT, Forms.BID))
            .processValues(OfChannel::new, "seen")
            .groupByKey(Grouped.with(Forms.TEXT, Forms.LONGS))
            .aggregate(() -> new long[FIGURES + 1], (key, more, sums) -> {
                long[] now = sum(sums, more);
                now[FIGURES] = Math.max(sums[FIGURES], more[FIGURES]);
                return now;
            }, Simple.stored(Forms.TEXT, Forms.LONGS))
            .toStream().map((key, sums) -> KeyValue.pair(Simple.key(key), write(new Json()
                .text("channel", key.substring(0, key.indexOf(' ')))
                .text("day", Simple.day(Long.parseLong(key.substring(key.indexOf(' ') + 1)) * DAY))
                .text("minute", Instant.ofEpochMilli(sums[FIGURES]).toString().substring(11, 16)), sums).bytes()));
    }

    private static long[] sum(long[] sums, long[] more) {
        long[] now = sums.clone();
        for (int at = 0; at < FIGURES; at++) now[at] += more[at];
        return now;
    }

    private static Json write(Json json, long[] sums) {
        for (int of = 0; of < NAMES.length; of++) {
            json.number("total_" + NAMES[of], sums[4 * of]);
            for (int rank = 1; rank < 4; rank++) json.number("rank" + rank + "_" + NAMES[of], sums[4 * of + rank]);
        }
        return json;
    }

    private static long bits(Bid bid) {
        return 1 | 2 << bid.rank();
    }

    /** Ones for the bits among the four figures that begin at {@code from}. */
    private static void add(long[] figures, int from, long bits) {
        for (int at = 0; at < 4; at++) figures[from + at] += bits >> at & 1;
    }

    private static final class OfTask implements Processor<byte[], Bid, long[], long[]> {
        private ProcessorContext<long[], long[]> context;
        private KeyValueStore<long[], Long> seen;
        private KeyValueStore<Long, long[]> counts;

        @Override
        public void init(ProcessorContext<long[], long[]> owner) {
            context = owner;
            seen = owner.getStateStore("task-seen");
            counts = owner.getStateStore("counts");
            owner.schedule(Duration.ofMillis(500), PunctuationType.WALL_CLOCK_TIME, this::flush);
        }

        @Override
        public void process(Record<byte[], Bid> record) {
            Bid bid = record.value();
            long day = bid.time() / DAY, bits = bits(bid);
            long[] sums = counts.get(day);
            sums = sums == null ? new long[4] : sums.clone();
            add(sums, 0, bits);
            counts.put(day, sums);
            once(new long[] {BIDDERS, bid.bidder(), day}, bits, record.timestamp());
            once(new long[] {AUCTIONS, bid.auction(), day}, bits, record.timestamp());
        }

        private void once(long[] id, long bits, long time) {
            Long before = seen.get(id);
            long now = before == null ? bits : before | bits;
            if (before != null && before == now) return;
            seen.put(id, now);
            context.forward(new Record<>(id, new long[] {now}, time));
        }

        private void flush(long time) {
            try (KeyValueIterator<Long, long[]> all = counts.all()) {
                while (all.hasNext()) {
                    var each = all.next();
                    context.forward(new Record<>(new long[] {BIDS, context.taskId().partition(), each.key}, each.value,
                        each.key * DAY));
                    counts.delete(each.key);
                }
            }
        }
    }

    private static final class OfDay implements Processor<long[], long[], Long, long[]> {
        private ProcessorContext<Long, long[]> context;
        private KeyValueStore<long[], Long> seen;

        @Override
        public void init(ProcessorContext<Long, long[]> owner) {
            context = owner;
            seen = owner.getStateStore("seen");
        }

        @Override
        public void process(Record<long[], long[]> record) {
            long[] key = record.key();
            long[] figures = new long[FIGURES];
            if (key[0] == BIDS) {
                System.arraycopy(record.value(), 0, figures, 0, 4);
            } else {
                Long before = seen.get(key);
                long more = before == null ? record.value()[0] : record.value()[0] & ~before;
                if (more == 0) return;
                seen.put(key, before == null ? more : before | more);
                add(figures, key[0] == BIDDERS ? 4 : 8, more);
            }
            context.forward(new Record<>(key[2], figures, record.timestamp()));
        }
    }

    private static final class OfChannel implements FixedKeyProcessor<String, Bid, long[]> {
        private FixedKeyProcessorContext<String, long[]> context;
        private KeyValueStore<String, Long> seen;

        @Override
        public void init(FixedKeyProcessorContext<String, long[]> owner) {
            context = owner;
            seen = owner.getStateStore("seen");
        }

        @Override
        public void process(FixedKeyRecord<String, Bid> record) {
            Bid bid = record.value();
            long[] figures = new long[FIGURES + 1];
            add(figures, 0, bits(bid));
            add(figures, 4, more(record.key() + " b" + bid.bidder(), bits(bid)));
            add(figures, 8, more(record.key() + " a" + bid.auction(), bits(bid)));
            figures[FIGURES] = bid.time();
            context.forward(record.withValue(figures));
        }

        private long more(String id, long bits) {
            Long before = seen.get(id);
            if (before == null) {
                seen.put(id, bits);
                return bits;
            }
            if ((before | bits) != before) seen.put(id, before | bits);
            return bits & ~before;
        }
    }
}
