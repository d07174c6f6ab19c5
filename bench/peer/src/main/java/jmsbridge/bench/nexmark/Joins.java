package jmsbridge.bench.nexmark;

import java.time.Duration;
import java.util.Set;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.processor.api.FixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorContext;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;

/** Queries that join. */
final class Joins {
    private static final Duration WITHIN = Duration.ofSeconds(10);
    private static final Set<String> STATES = Set.of("OR", "ID", "CA");

    private Joins() {}

    private static KStream<byte[], Auction> auctions(KStream<byte[], byte[]> events) {
        return events.mapValues(Events::auction).filter((key, auction) -> auction != null);
    }

    private static KStream<byte[], Person> people(KStream<byte[], byte[]> events) {
        return events.mapValues(Events::person).filter((key, person) -> person != null);
    }

    static KStream<byte[], byte[]> q3(KStream<byte[], byte[]> events) {
        var people = people(events).filter((key, person) -> STATES.contains(person.state()))
            .map((key, person) -> KeyValue.pair(person.id(), person))
            .toTable(Simple.stored(Forms.LONG, Forms.PERSON));
        var auctions = auctions(events).filter((key, auction) -> auction.category() == 10)
            .map((key, auction) -> KeyValue.pair(auction.id(), auction.withoutText()))
            .toTable(Simple.stored(Forms.LONG, Forms.AUCTION));
        return auctions.join(people, Auction::seller, (auction, person) -> new Json().text("name", person.name())
                .text("city", person.city()).text("state", person.state()).number("id", auction.id()).bytes(),
                Simple.stored(Forms.LONG, Forms.BYTES))
            .toStream().map((id, found) -> KeyValue.pair(Simple.key(id), found));
    }

    /** Values before the averages are a category and a price, sums are the total and the number. */
    static KStream<byte[], byte[]> q4(KStream<byte[], byte[]> events) {
        var auctions = auctions(events).map((key, auction) -> KeyValue.pair(auction.id(), auction.withoutText()));
        var bids = Simple.bids(events, false)
            .map((key, bid) -> KeyValue.pair(bid.auction(), new long[] {bid.price(), bid.time()}));
        return bids.join(auctions, (bid, auction) -> bid[1] < auction.time() || bid[1] > auction.expires() ? null
                    : new long[] {auction.category(), bid[0]},
                JoinWindows.ofTimeDifferenceAndGrace(WITHIN, Windows.GRACE),
                StreamJoined.with(Forms.LONG, Forms.LONGS, Forms.AUCTION))
            .filter((id, priced) -> priced != null)
            .groupByKey(Grouped.with(Forms.LONG, Forms.LONGS))
            .reduce((before, priced) -> priced[1] > before[1] ? priced : before, Simple.stored(Forms.LONG, Forms.LONGS))
            .groupBy((id, priced) -> KeyValue.pair(priced[0], priced[1]), Grouped.with(Forms.LONG, Forms.LONG))
            .aggregate(() -> new long[] {0, 0}, (category, price, sum) -> new long[] {sum[0] + price, sum[1] + 1},
                (category, price, sum) -> new long[] {sum[0] - price, sum[1] - 1}, Simple.stored(Forms.LONG, Forms.LONGS))
            .filter((category, sum) -> sum[1] > 0)
            .toStream().map((category, sum) -> KeyValue.pair(Simple.key(category), sum == null ? null
                : new Json().number("category", category).number("final", sum[0] / sum[1]).bytes()));
    }

    /** Keys are a person and the number of a window of ten seconds. */
    static KStream<byte[], byte[]> q8(StreamsBuilder builder, KStream<byte[], byte[]> events) {
        builder.addStateStore(Stores.windowStoreBuilder(
            Stores.persistentWindowStore("once", Windows.GRACE, WITHIN, false), Forms.LONGS, Forms.LONG)
            .withCachingEnabled());
        var people = people(events)
            .map((key, person) -> KeyValue.pair(new long[] {person.id(), person.time() / Windows.SIZE}, person));
        var sellers = auctions(events)
            .map((key, auction) -> KeyValue.pair(new long[] {auction.seller(), auction.time() / Windows.SIZE}, 0L))
            .repartition(Repartitioned.with(Forms.LONGS, Forms.LONG))
            .processValues(Once::new, "once");
        return people.join(sellers, (person, seller) -> person, JoinWindows.ofTimeDifferenceAndGrace(WITHIN, Windows.GRACE),
                StreamJoined.with(Forms.LONGS, Forms.PERSON, Forms.LONG))
            .map((key, person) -> KeyValue.pair(Simple.key(person.id()), new Json().number("id", person.id())
                .text("name", person.name()).number("starttime", key[1] * Windows.SIZE).bytes()));
    }

    /** Passes the first record of each key. */
    private static final class Once implements FixedKeyProcessor<long[], Long, Long> {
        private FixedKeyProcessorContext<long[], Long> context;
        private WindowStore<long[], Long> seen;

        @Override
        public void init(FixedKeyProcessorContext<long[], Long> owner) {
            context = owner;
            seen = owner.getStateStore("once");
        }

        @Override
        public void process(FixedKeyRecord<long[], Long> record) {
            long start = record.key()[1] * Windows.SIZE;
            if (seen.fetch(record.key(), start) != null) return;
            seen.put(record.key(), 0L, start);
            context.forward(record);
        }
    }

    static KStream<byte[], byte[]> q20(KStream<byte[], byte[]> events) {
        var auctions = auctions(events).filter((key, auction) -> auction.category() == 10)
            .map((key, auction) -> KeyValue.pair(auction.id(), auction));
        var bids = Simple.bids(events, true).map((key, bid) -> KeyValue.pair(bid.auction(), bid));
        return bids.join(auctions, (bid, auction) -> {
            String own = bid.write("bid_").toString();
            return Bid.utf8(own.substring(0, own.length() - 1) + "," + auction.rest().substring(1));
        }, JoinWindows.ofTimeDifferenceAndGrace(WITHIN, Windows.GRACE), StreamJoined.with(Forms.LONG, Forms.BID, Forms.AUCTION))
            .map((id, found) -> KeyValue.pair(Simple.key(id), found));
    }
}
