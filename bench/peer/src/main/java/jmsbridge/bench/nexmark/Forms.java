package jmsbridge.bench.nexmark;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;

/** Serdes of internal topics and stores, which are binary. */
final class Forms {
    static final Serde<byte[]> BYTES = Serdes.ByteArray();
    static final Serde<Long> LONG = Serdes.Long();
    static final Serde<String> TEXT = Serdes.String();
    static final Serde<Bid> BID = form(Bid::bytes, Bid::of);
    static final Serde<Auction> AUCTION = form(Auction::bytes, Auction::of);
    static final Serde<Person> PERSON = form(Person::bytes, Person::of);
    static final Serde<long[]> LONGS = form(Forms::bytes, Forms::longs);
    static final Serde<List<Bid>> BIDS = form(Forms::bytes, Forms::bids);

    private Forms() {}

    private static <T> Serde<T> form(Function<T, byte[]> writer, Function<byte[], T> reader) {
        return Serdes.serdeFrom((topic, value) -> value == null ? null : writer.apply(value),
            (topic, bytes) -> bytes == null ? null : reader.apply(bytes));
    }

    private static byte[] bytes(long[] values) {
        ByteBuffer bytes = ByteBuffer.allocate(8 * values.length);
        bytes.asLongBuffer().put(values);
        return bytes.array();
    }

    private static long[] longs(byte[] bytes) {
        long[] values = new long[bytes.length / 8];
        ByteBuffer.wrap(bytes).asLongBuffer().get(values);
        return values;
    }

    private static byte[] bytes(List<Bid> bids) {
        List<byte[]> parts = bids.stream().map(Bid::bytes).toList();
        ByteBuffer bytes = ByteBuffer.allocate(parts.stream().mapToInt(part -> part.length).sum());
        parts.forEach(bytes::put);
        return bytes.array();
    }

    private static List<Bid> bids(byte[] data) {
        ByteBuffer bytes = ByteBuffer.wrap(data);
        List<Bid> bids = new ArrayList<>();
        while (bytes.hasRemaining()) bids.add(Bid.of(bytes));
        return bids;
    }
}
