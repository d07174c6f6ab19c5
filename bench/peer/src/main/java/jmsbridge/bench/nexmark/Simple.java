package jmsbridge.bench.nexmark;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.KeyValueStore;

/** Queries of single bids, and of all bids of a key. */
final class Simple {
    private static final long DAY = 86_400_000;

    private Simple() {}

    static KStream<byte[], Bid> bids(KStream<byte[], byte[]> events, boolean hasText) {
        return events.mapValues(event -> Events.bid(event, hasText)).filter((key, bid) -> bid != null);
    }

    static <K, V> Materialized<K, V, KeyValueStore<Bytes, byte[]>> stored(
            org.apache.kafka.common.serialization.Serde<K> key, org.apache.kafka.common.serialization.Serde<V> value) {
        return Materialized.<K, V, KeyValueStore<Bytes, byte[]>>with(key, value).withCachingEnabled();
    }

    static byte[] key(Object key) {
        return Bid.utf8(key.toString());
    }

    static String day(long time) {
        return java.time.LocalDate.ofEpochDay(time / DAY).toString();
    }

    static KStream<byte[], byte[]> q0(KStream<byte[], byte[]> events) {
        return bids(events, true).mapValues(bid -> new Json().number("auction", bid.auction())
            .number("bidder", bid.bidder()).number("price", bid.price()).number("dateTime", bid.time())
            .text("extra", bid.extra()).bytes());
    }

    static KStream<byte[], byte[]> q1(KStream<byte[], byte[]> events) {
        return bids(events, true).mapValues(bid -> new Json().number("auction", bid.auction())
            .number("bidder", bid.bidder()).thousandths("price", bid.price() * 908).number("dateTime", bid.time())
            .text("extra", bid.extra()).bytes());
    }

    static KStream<byte[], byte[]> q2(KStream<byte[], byte[]> events) {
        return bids(events, false).filter((key, bid) -> bid.auction() % 123 == 0)
            .mapValues(bid -> new Json().number("auction", bid.auction()).number("price", bid.price()).bytes());
    }

    /** Keys are the auction and the day; sums are those of bids, of each rank, least, greatest and sum of prices. */
    static KStream<byte[], byte[]> q17(KStream<byte[], byte[]> events) {
        return bids(events, false)
            .map((key, bid) -> KeyValue.pair(new long[] {bid.auction(), bid.time() / DAY}, bid.price()))
            .groupByKey(Grouped.with(Forms.LONGS, Forms.LONG))
            .aggregate(() -> new long[] {0, 0, 0, 0, Long.MAX_VALUE, Long.MIN_VALUE, 0}, (key, price, before) -> {
                long[] sums = before.clone();
                sums[0]++;
                sums[price < 10_000 ? 1 : price < 1_000_000 ? 2 : 3]++;
                sums[4] = Math.min(sums[4], price);
                sums[5] = Math.max(sums[5], price);
                sums[6] += price;
                return sums;
            }, stored(Forms.LONGS, Forms.LONGS))
            .toStream().map((key, sums) -> KeyValue.pair(key(key[0] + " " + key[1]), new Json().number("auction", key[0])
                .text("day", day(key[1] * DAY)).number("total_bids", sums[0]).number("rank1_bids", sums[1])
                .number("rank2_bids", sums[2]).number("rank3_bids", sums[3]).number("min_price", sums[4])
                .number("max_price", sums[5]).number("sum_price", sums[6]).number("avg_price", sums[6] / sums[0])
                .bytes()));
    }

    static KStream<byte[], byte[]> q18(KStream<byte[], byte[]> events) {
        return bids(events, true).map((key, bid) -> KeyValue.pair(new long[] {bid.bidder(), bid.auction()}, bid))
            .groupByKey(Grouped.with(Forms.LONGS, Forms.BID))
            .reduce((before, bid) -> bid.time() >= before.time() ? bid : before, stored(Forms.LONGS, Forms.BID))
            .toStream().map((key, bid) -> KeyValue.pair(key(key[0] + " " + key[1]), bid.write("").bytes()));
    }

    static KStream<byte[], byte[]> q19(KStream<byte[], byte[]> events) {
        return bids(events, true).map((key, bid) -> KeyValue.pair(bid.auction(), bid))
            .groupByKey(Grouped.with(Forms.LONG, Forms.BID))
            .aggregate(List::of, (auction, bid, best) -> inserted(best, bid), stored(Forms.LONG, Forms.BIDS))
            .toStream().map((auction, best) -> KeyValue.pair(key(auction), new Json().number("auction", auction)
                .raw("bids", best.stream().map(bid -> bid.write("").toString())
                    .collect(Collectors.joining(",", "[", "]"))).bytes()));
    }

    /** The ten highest bids when one more has come. */
    private static List<Bid> inserted(List<Bid> best, Bid bid) {
        int at = best.size();
        while (at > 0 && best.get(at - 1).price() < bid.price()) at--;
        if (at == 10) return best;
        List<Bid> now = new ArrayList<>(best);
        now.add(at, bid);
        return now.size() > 10 ? now.subList(0, 10) : now;
    }
}
