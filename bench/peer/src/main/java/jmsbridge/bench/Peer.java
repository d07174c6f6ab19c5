package jmsbridge.bench;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.net.URI;
import java.util.List;
import java.util.Properties;
import java.util.function.Supplier;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.streams.Topology;

/**
 * The bridge's routing as a Kafka Streams program: journal to five topics, or to five pairs of them; at least once.
 *
 * <p>Arguments: bootstrap= application= journal= outputs=TOPIC,… origin= state= threads= linger= [bodies=json, xml: routes
 * by values of bodies; mask: by those of JSON bodies, two of which it masks; avro: the same, and writes them by the
 * schema at the URL schema=]; any further setting of Kafka Streams as set=NAME:VALUE,….
 */
public final class Peer {
    private Peer() {}

    public static void main(String[] arguments) throws InterruptedException, IOException {
        Arguments given = new Arguments(arguments);
        List<String> outputs = given.list("outputs");
        Running.run(topology(given.text("journal"), outputs, given.text("origin"), fields(given)), settings(given));
    }

    private static Topology topology(
        String journal, List<String> outputs, String origin, Supplier<BodyFields> fields) {
        Topology topology = new Topology();
        topology.addSource("journal", new ByteArrayDeserializer(), new ByteArrayDeserializer(), journal);
        topology.addProcessor("router", () -> new Router(origin, fields.get(), outputs.size()), "journal");
        for (int route = 0; route < outputs.size(); route++) {
            var bytes = new ByteArraySerializer();
            topology.addSink(Router.SINKS[route], outputs.get(route), bytes, bytes, "router");
        }
        return topology;
    }

    /** Makes what each task reads bodies with; the id of a schema is asked for once. */
    private static Supplier<BodyFields> fields(Arguments given) throws IOException {
        switch (given.text("bodies", "")) {
            case "json": return JsonFields::new;
            case "xml": return XmlFields::new;
            case "mask": return MaskedFields::new;
            case "avro":
                int id = schemaId(given.text("schema"));
                return () -> new AvroFields(id);
            default: return () -> null;
        }
    }

    private static int schemaId(String url) throws IOException {
        try (JsonParser answer = new JsonFactory().createParser(URI.create(url).toURL())) {
            while (answer.nextToken() != null) {
                if ("id".equals(answer.currentName()) && answer.nextToken() == JsonToken.VALUE_NUMBER_INT) {
                    return answer.getIntValue();
                }
            }
        }
        throw new IllegalStateException("no id of a schema at " + url);
    }

    private static Properties settings(Arguments given) {
        Properties settings = new Properties();
        settings.put("application.id", given.text("application"));
        settings.put("bootstrap.servers", given.text("bootstrap"));
        settings.put("state.dir", given.text("state"));
        settings.put("num.stream.threads", given.text("threads"));
        settings.put("processing.guarantee", "at_least_once");
        settings.put("consumer.auto.offset.reset", "earliest");
        settings.put("producer.acks", "all");
        settings.put("producer.linger.ms", given.text("linger"));
        settings.put("producer.batch.size", 256 * 1024);
        String further = given.text("set", "");
        for (String pair : further.isEmpty() ? new String[0] : further.split(",")) {
            settings.put(pair.substring(0, pair.indexOf(':')), pair.substring(pair.indexOf(':') + 1));
        }
        return settings;
    }
}
