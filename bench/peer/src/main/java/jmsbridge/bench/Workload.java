package jmsbridge.bench;

import java.util.Arrays;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.internals.RecordHeaders;

import static java.nio.charset.StandardCharsets.US_ASCII;

/**
 * The messages of every benchmark: canonical journal records with six headers and a body of 400 bytes, over four
 * addresses and four regions in turn, and the route that each must take. `bench/workload.py` says the same in
 * properties form; the verifier holds what came out against this table.
 */
final class Workload {
    static final int BODY_BYTES = 400;
    static final String[] ADDRESSES = {"orders", "prices", "trades", "audit"};
    static final String[] REGIONS = {"emea", "apac", "amer", "anz"};

    /** Route of (address, region), -1 where none matches. */
    private static final int[][] ROUTES = {
        {0, 1, -1, -1}, // orders: one route for emea, one for apac
        {2, 2, 2, 2}, // prices: one route
        {3, 4, 3, 4}, // trades: one route for emea and amer, one for the rest
        {-1, -1, -1, -1},
    };
    static final int ROUTE_COUNT = 5;

    private static final int COMBINATIONS = ADDRESSES.length * REGIONS.length;
    private static final byte[] TEXT = "text".getBytes(US_ASCII);
    private static final byte[][] DESTINATIONS =
        Arrays.stream(ADDRESSES).map(address -> ("queue:" + address).getBytes(US_ASCII)).toArray(byte[][]::new);
    private static final byte[][] REGION_VALUES =
        Arrays.stream(REGIONS).map(region -> region.getBytes(US_ASCII)).toArray(byte[][]::new);
    private static final byte[] FILLING = new byte[1 << 20];

    static {
        for (int i = 0; i < FILLING.length; i++) FILLING[i] = (byte) ('a' + i % 26);
    }

    private Workload() {}

    static int route(String address, String region) {
        return ROUTES[Arrays.asList(ADDRESSES).indexOf(address)][Arrays.asList(REGIONS).indexOf(region)];
    }

    /** The record number `index`. */
    static ProducerRecord<byte[], byte[]> record(String topic, long index) {
        return record(topic, index, "");
    }

    /** The record number `index`, with address and region also in a body of the same size that is `json` or `xml`. */
    static ProducerRecord<byte[], byte[]> record(String topic, long index, String bodies) {
        int combination = (int) (index % COMBINATIONS);
        String address = ADDRESSES[combination / REGIONS.length];
        String region = REGIONS[combination % REGIONS.length];
        byte[] body = switch (bodies) {
            case "json" -> json(index, address, region);
            case "xml" -> xml(index, address, region);
            default -> body(index, BODY_BYTES);
        };
        byte[] destination = DESTINATIONS[combination / REGIONS.length];
        return record(topic, index, destination, REGION_VALUES[combination % REGIONS.length], body);
    }

    private static byte[] json(long index, String address, String region) {
        String document = "{\"id\":" + index + ",\"kind\":\"" + address + "\",\"customer\":{\"name\":\"ACME Europe\","
            + "\"region\":\"" + region + "\",\"tier\":3},\"placed\":\"2026-11-27T20:00:00Z\",\"lines\":["
            + "{\"sku\":\"A-100\",\"amount\":12.50,\"count\":2},{\"sku\":\"B-200\",\"amount\":7,\"count\":1}],"
            + "\"paid\":true,\"note\":\"";
        return filled(document, "\"}");
    }

    private static byte[] xml(long index, String address, String region) {
        String document = "<order id=\"" + index + "\" priority=\"" + address + "\"><customer><name>ACME Europe</name>"
            + "<region>" + region + "</region><tier>3</tier></customer><placed>2026-11-27T20:00:00Z</placed>"
            + "<line sku=\"A-100\" amount=\"12.50\" count=\"2\"/><line sku=\"B-200\" amount=\"7\" count=\"1\"/>"
            + "<paid>true</paid><note>";
        return filled(document, "</note></order>");
    }

    private static byte[] filled(String document, String end) {
        byte[] text = join(document, Arrays.copyOf(FILLING, BODY_BYTES - document.length()));
        System.arraycopy(end.getBytes(US_ASCII), 0, text, BODY_BYTES - end.length(), end.length());
        return text;
    }

    private static byte[] body(long index, int bytes) {
        byte[] number = Long.toString(index).getBytes(US_ASCII);
        byte[] body = Arrays.copyOf(FILLING, bytes);
        System.arraycopy(number, 0, body, 0, number.length);
        return body;
    }

    /** The record number `index` of `bench/scale.py`: one address, so many regions in turn, a body of up to 1 MiB. */
    static ProducerRecord<byte[], byte[]> record(String topic, long index, int regions, int bodyBytes) {
        byte[] region = ("r" + index % regions).getBytes(US_ASCII);
        return record(topic, index, DESTINATIONS[0], region, body(index, bodyBytes));
    }

    private static ProducerRecord<byte[], byte[]> record(
        String topic, long index, byte[] destination, byte[] region, byte[] body) {
        byte[] number = Long.toString(index).getBytes(US_ASCII);
        byte[] correlation = join("order-", number);
        RecordHeaders headers = new RecordHeaders();
        headers.add("jms.JMSMessageID", join("ID:bench-40000-1700000000000-1:1:1:1:", number));
        headers.add("jms.JMSDestination", destination);
        headers.add("jms.JMSCorrelationID", correlation);
        headers.add("jms.JMSTimestamp", Long.toString(System.currentTimeMillis()).getBytes(US_ASCII));
        headers.add("jms.region", region);
        headers.add("jmsbridge.body", TEXT);
        return new ProducerRecord<>(topic, null, null, correlation, body, headers);
    }

    /** The `nth` index whose record some route takes, in the same proportions. */
    static long routedIndex(long nth) {
        return nth / ROUTED.length * COMBINATIONS + ROUTED[(int) (nth % ROUTED.length)];
    }

    private static final int[] ROUTED = java.util.stream.IntStream.range(0, COMBINATIONS)
        .filter(combination -> ROUTES[combination / REGIONS.length][combination % REGIONS.length] >= 0)
        .toArray();

    private static byte[] join(String prefix, byte[] number) {
        byte[] joined = new byte[prefix.length() + number.length];
        System.arraycopy(prefix.getBytes(US_ASCII), 0, joined, 0, prefix.length());
        System.arraycopy(number, 0, joined, prefix.length(), number.length);
        return joined;
    }
}
