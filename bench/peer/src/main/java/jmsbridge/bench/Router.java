package jmsbridge.bench;

import java.util.Arrays;
import java.util.stream.IntStream;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.processor.api.RecordMetadata;

import static java.nio.charset.StandardCharsets.UTF_8;

/**
 * What the bridge does to each message, in plain Java: drop what this bridge routed before or what has expired, take
 * the first matching route, check body and key, add origin and position, pass all headers on. One pass over the headers
 * finds all that is needed.
 */
final class Router implements Processor<byte[], byte[], byte[], byte[]> {
    /** Most destinations of a route. */
    private static final int COPIES = 2;
    /** Sinks by route, for each destination of the routes in turn. */
    static final String[] SINKS =
        IntStream.range(0, COPIES * Workload.ROUTE_COUNT).mapToObj(sink -> "sink-" + sink).toArray(String[]::new);

    private static final byte[] TEXT = "text".getBytes(UTF_8);
    private static final byte[] BYTES = "bytes".getBytes(UTF_8);

    private final byte[] originBytes;
    private final BodyFields fields;
    private final int sinks;
    private ProcessorContext<byte[], byte[]> context;

    /** Routes by `fields` of bodies, or by headers if they are null; to each of so many `sinks` for all routes. */
    Router(String origin, BodyFields fields, int sinks) {
        this.originBytes = origin.getBytes(UTF_8);
        this.fields = fields;
        this.sinks = sinks;
    }

    @Override
    public void init(ProcessorContext<byte[], byte[]> context) {
        this.context = context;
    }

    @Override
    public void process(Record<byte[], byte[]> record) {
        Headers headers = record.headers();
        byte[] destination = null;
        byte[] region = null;
        byte[] expiration = null;
        byte[] body = null;
        byte[] key = null;
        for (Header header : headers) {
            switch (header.key()) {
                case "jmsbridge.origin" -> {
                    if (Arrays.equals(originBytes, header.value())) return;
                }
                case "jms.JMSExpiration" -> expiration = header.value();
                case "jms.JMSDestination" -> destination = header.value();
                case "jms.region" -> region = header.value();
                case "jmsbridge.body" -> body = header.value();
                case "jms.JMSCorrelationID" -> key = header.value();
                default -> { }
            }
        }
        if (expiration != null && expired(text(expiration))) return;
        int route;
        if (fields != null) {
            fields.read(record.value());
            route = route(fields.kind, fields.region);
        } else {
            route = route(address(text(destination)), text(region));
        }
        if (route < 0) return;
        if (!Arrays.equals(TEXT, body) && !Arrays.equals(BYTES, body)) {
            throw new IllegalStateException("body neither text nor bytes");
        }
        if (key == null || !keyIsValid(key)) throw new IllegalStateException("no valid key");
        RecordMetadata from = context.recordMetadata().orElseThrow();
        String position = from.topic() + ":" + from.partition() + ":" + from.offset();
        headers.add("jmsbridge.origin", originBytes).add("jmsbridge.position", position.getBytes(UTF_8));
        byte[] value = fields == null ? record.value() : fields.changed(record.value());
        Record<byte[], byte[]> routed = record.withKey(key).withValue(value);
        for (int sink = route; sink < sinks; sink += Workload.ROUTE_COUNT) context.forward(routed, SINKS[sink]);
    }

    /** The five routes in order; the first that matches wins. */
    static int route(String address, String region) {
        if ("orders".equals(address) && "emea".equals(region)) return 0;
        if ("orders".equals(address) && "apac".equals(region)) return 1;
        if ("prices".equals(address)) return 2;
        if ("trades".equals(address) && ("emea".equals(region) || "amer".equals(region))) return 3;
        if ("trades".equals(address)) return 4;
        return -1;
    }

    private static boolean expired(String expiration) {
        long at = Long.parseLong(expiration);
        return at > 0 && at <= System.currentTimeMillis();
    }

    private static boolean keyIsValid(byte[] key) {
        if (key.length == 0) return false;
        for (byte b : key) {
            boolean alphanumeric = b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z';
            if (!alphanumeric && b != '-' && b != ':' && b != '.' && b != '_') return false;
        }
        return true;
    }

    private static String address(String destination) {
        return destination == null ? null : destination.substring(destination.indexOf(':') + 1);
    }

    private static String text(byte[] value) {
        return value == null ? null : new String(value, UTF_8);
    }
}
