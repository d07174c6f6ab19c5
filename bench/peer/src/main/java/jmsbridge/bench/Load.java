package jmsbridge.bench;

import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Fills the journal as fast as it goes: bootstrap= topic= records= [regions= bytes= bodies=]. With `regions`, the
 * records are those of `bench/scale.py`; `bodies=json` or `xml` makes their bodies documents. Fails if any record is refused.
 */
public final class Load {
    private Load() {}

    public static void main(String[] arguments) {
        Arguments given = new Arguments(arguments);
        String topic = given.text("topic");
        long records = given.number("records");
        int regions = (int) given.number("regions", 0);
        int bytes = (int) given.number("bytes", Workload.BODY_BYTES);
        String bodies = given.text("bodies", "");
        AtomicReference<Exception> failure = new AtomicReference<>();
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", given.text("bootstrap"), "linger.ms", 20, "batch.size", 512 * 1024, "acks", "all",
            "max.request.size", 8 << 20, "buffer.memory", 128L << 20);
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (long index = 0; index < records && failure.get() == null; index++) {
                var record = regions == 0
                    ? Workload.record(topic, index, bodies) : Workload.record(topic, index, regions, bytes);
                producer.send(record, (metadata, error) -> {
                    if (error != null) failure.compareAndSet(null, error);
                });
            }
        }
        if (failure.get() != null) throw new IllegalStateException("the journal refused a record", failure.get());
    }
}
