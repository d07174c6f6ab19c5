import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import javax.jms.Connection;
import javax.jms.ConnectionFactory;
import javax.jms.DeliveryMode;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Queue;
import javax.jms.QueueBrowser;
import javax.jms.Session;
import javax.jms.TextMessage;
import org.apache.activemq.artemis.api.jms.ActiveMQJMSConstants;
import org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.qpid.jms.JmsConnectionFactory;

import static java.nio.charset.StandardCharsets.UTF_8;

/**
 * A plain JMS application beside sources, with Artemis's own client, or with Qpid JMS for a URL of amqp; run from its source.
 *
 * <p>{@code load url= queue= messages= bytes=} sends persistent text messages. {@code consume url= queue= messages=
 * bootstrap= topic= batch= each=} takes that many, produces each to Kafka (value and message id) and acknowledges a batch
 * after Kafka has confirmed all of it: by its last message, or with {@code each=true} each message by itself.
 * {@code drain url= queue= messages= warm= batch=} only takes and acknowledges them, and prints the seconds after the
 * first {@code warm}. {@code left url= queue=} prints how many are in the queue.
 */
public final class JmsPeer {
    private JmsPeer() {}

    public static void main(String[] arguments) throws Exception {
        Map<String, String> given = new HashMap<>();
        for (String argument : Arrays.copyOfRange(arguments, 1, arguments.length)) {
            given.put(argument.substring(0, argument.indexOf('=')), argument.substring(argument.indexOf('=') + 1));
        }
        try (var connection = factory(given.get("url")).createConnection()) {
            connection.start();
            switch (arguments[0]) {
                case "load" -> load(connection, given);
                case "consume" -> consume(connection, given);
                case "drain" -> drain(connection, given);
                case "left" -> left(connection, given);
                default -> throw new IllegalArgumentException(arguments[0]);
            }
        }
    }

    private static ConnectionFactory factory(String url) throws Exception {
        return url.startsWith("amqp") ? new JmsConnectionFactory(url) : new ActiveMQConnectionFactory(url);
    }

    private static void load(Connection connection, Map<String, String> given) throws Exception {
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageProducer producer = session.createProducer(session.createQueue(given.get("queue")));
        producer.setDeliveryMode(DeliveryMode.PERSISTENT);
        String text = "x".repeat(Integer.parseInt(given.get("bytes")));
        int messages = Integer.parseInt(given.get("messages"));
        for (int sent = 1; sent <= messages; sent++) {
            producer.send(session.createTextMessage(text));
            if (sent % 1000 == 0 || sent == messages) session.commit();
        }
    }

    private static void consume(Connection connection, Map<String, String> given) throws Exception {
        boolean individually = Boolean.parseBoolean(given.get("each"));
        int mode = individually ? ActiveMQJMSConstants.INDIVIDUAL_ACKNOWLEDGE : Session.CLIENT_ACKNOWLEDGE;
        Session session = connection.createSession(false, mode);
        MessageConsumer consumer = session.createConsumer(session.createQueue(given.get("queue")));
        int messages = Integer.parseInt(given.get("messages"));
        int batch = Integer.parseInt(given.get("batch"));
        String topic = given.get("topic");
        List<Message> open = new ArrayList<>();
        AtomicReference<Exception> failure = new AtomicReference<>();
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", given.get("bootstrap"), "acks", "all", "enable.idempotence", true,
            "linger.ms", 5, "batch.size", 512 * 1024);
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int taken = 1; taken <= messages; taken++) {
                Message message = consumer.receive();
                open.add(message);
                byte[] value = ((TextMessage) message).getText().getBytes(UTF_8);
                byte[] key = message.getJMSMessageID().getBytes(UTF_8);
                producer.send(new ProducerRecord<>(topic, key, value), (metadata, error) -> {
                    if (error != null) failure.compareAndSet(null, error);
                });
                if (taken % batch == 0 || taken == messages) {
                    producer.flush();
                    if (failure.get() != null) throw failure.get();
                    for (Message each : individually ? open : List.of(message)) each.acknowledge();
                    open.clear();
                }
            }
        }
    }

    private static void drain(Connection connection, Map<String, String> given) throws Exception {
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(session.createQueue(given.get("queue")));
        int messages = Integer.parseInt(given.get("messages"));
        int warm = Integer.parseInt(given.get("warm"));
        int batch = Integer.parseInt(given.get("batch"));
        long begun = System.nanoTime();
        long bytes = 0;
        for (int taken = 1; taken <= messages; taken++) {
            Message message = consumer.receive();
            bytes += ((TextMessage) message).getText().length();
            if (taken % batch == 0 || taken == messages) message.acknowledge();
            if (taken == warm) begun = System.nanoTime();
        }
        if (bytes == 0) throw new IllegalStateException("empty messages");
        System.out.println((System.nanoTime() - begun) / 1e9);
    }

    private static void left(Connection connection, Map<String, String> given) throws Exception {
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Queue queue = session.createQueue(given.get("queue"));
        int found = 0;
        try (QueueBrowser browser = session.createBrowser(queue)) {
            for (var messages = browser.getEnumeration(); messages.hasMoreElements(); found++) messages.nextElement();
        }
        System.out.println(found);
    }
}
