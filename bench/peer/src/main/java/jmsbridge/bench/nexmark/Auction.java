package jmsbridge.bench.nexmark;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** An auction; {@code rest} is JSON of the fields that q20 publishes. */
record Auction(long id, long seller, long category, long time, long expires, String rest) {
    Auction withoutText() {
        return new Auction(id, seller, category, time, expires, "");
    }

    static byte[] bytes(Auction auction) {
        byte[] rest = auction.rest.getBytes(StandardCharsets.UTF_8);
        return ByteBuffer.allocate(40 + rest.length).putLong(auction.id).putLong(auction.seller)
            .putLong(auction.category).putLong(auction.time).putLong(auction.expires).put(rest).array();
    }

    static Auction of(byte[] data) {
        ByteBuffer bytes = ByteBuffer.wrap(data);
        return new Auction(bytes.getLong(), bytes.getLong(), bytes.getLong(), bytes.getLong(), bytes.getLong(),
            new String(data, 40, data.length - 40, StandardCharsets.UTF_8));
    }
}
