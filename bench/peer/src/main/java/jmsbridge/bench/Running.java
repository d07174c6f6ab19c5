package jmsbridge.bench;

import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.Topology;

/** Run of a topology of Kafka Streams by a program of its own, until it fails or the program is told to end. */
public final class Running {
    private Running() {}

    /** Runs a topology; returns when it has failed or was closed. */
    public static void run(Topology topology, Properties settings) throws InterruptedException {
        var streams = new KafkaStreams(topology, settings);
        var ended = new CountDownLatch(1);
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.ERROR) ended.countDown();
        });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            streams.close(Duration.ofSeconds(10));
            ended.countDown();
        }));
        streams.start();
        ended.await();
    }
}
