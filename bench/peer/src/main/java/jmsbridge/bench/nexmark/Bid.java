package jmsbridge.bench.nexmark;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** A bid; {@code url} and {@code extra} are null where a query does not need them. */
record Bid(long auction, long bidder, long price, String channel, String url, long time, String extra) {
    /** The rank of its price, from 0. */
    int rank() {
        return price < 10_000 ? 0 : price < 1_000_000 ? 1 : 2;
    }

    Bid withoutText() {
        return new Bid(auction, bidder, price, null, null, time, null);
    }

    /** All its fields as JSON; {@code prefix} is for the names of the last two. */
    Json write(String prefix) {
        return new Json().number("auction", auction).number("bidder", bidder).number("price", price)
            .text("channel", channel).text("url", url).number(prefix + "dateTime", time).text(prefix + "extra", extra);
    }

    static byte[] bytes(Bid bid) {
        byte[] channel = utf8(bid.channel), url = utf8(bid.url), extra = utf8(bid.extra);
        ByteBuffer bytes = ByteBuffer.allocate(32 + 12 + channel.length + url.length + extra.length)
            .putLong(bid.auction).putLong(bid.bidder).putLong(bid.price).putLong(bid.time);
        for (byte[] text : new byte[][] {channel, url, extra}) bytes.putInt(text.length).put(text);
        return bytes.array();
    }

    static Bid of(byte[] data) {
        return of(ByteBuffer.wrap(data));
    }

    static Bid of(ByteBuffer bytes) {
        long auction = bytes.getLong(), bidder = bytes.getLong(), price = bytes.getLong(), time = bytes.getLong();
        String channel = text(bytes), url = text(bytes), extra = text(bytes);
        return new Bid(auction, bidder, price, channel, url, time, extra);
    }

    static byte[] utf8(String text) {
        return text == null ? new byte[0] : text.getBytes(StandardCharsets.UTF_8);
    }

    private static String text(ByteBuffer bytes) {
        int length = bytes.getInt();
        if (length == 0) return null;
        String text = new String(bytes.array(), bytes.position(), length, StandardCharsets.UTF_8);
        bytes.position(bytes.position() + length);
        return text;
    }
}
