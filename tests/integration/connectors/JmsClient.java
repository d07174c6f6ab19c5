import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import java.util.Objects;
import javax.jms.BytesMessage;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.Destination;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Queue;
import javax.jms.Session;
import javax.jms.TemporaryQueue;
import javax.jms.TextMessage;
import org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory;

/**
 * A JMS application for the tests: it does what the lines on its standard input say, and answers each with one line.
 *
 * <p>{@code open queue:NAME} (a consumer; answers when it is there), {@code receive queue:NAME MILLISECONDS} (a message,
 * or an empty line), {@code answer queue:NAME MILLISECONDS} (the same, and its text goes to its JMSReplyTo),
 * {@code identified QUEUE HEX} (sends a message with a correlation id in bytes),
 * {@code request QUEUE TEXT} (sends with a temporary queue as JMSReplyTo; answers its name), {@code reply MILLISECONDS}
 * (what came there). Messages are printed as a form: {@code name=value&...}.
 */
public final class JmsClient {
    private final Session session;
    private final Map<String, MessageConsumer> consumers = new HashMap<>();
    private TemporaryQueue replies;

    private JmsClient(Session session) {
        this.session = session;
    }

    public static void main(String[] arguments) throws Exception {
        try (Connection connection = new ActiveMQConnectionFactory(arguments[0]).createConnection()) {
            connection.start();
            JmsClient client = new JmsClient(connection.createSession(false, Session.AUTO_ACKNOWLEDGE));
            BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            System.out.println("ready");
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                System.out.println(client.perform(line.split(" ", 3)));
            }
        }
    }

    private String perform(String[] words) throws Exception {
        switch (words[0]) {
            case "open":
                consumer(words[1]);
                return "";
            case "receive":
                return form(consumer(words[1]).receive(Long.parseLong(words[2])));
            case "answer":
                Message request = consumer(words[1]).receive(Long.parseLong(words[2]));
                if (request != null) {
                    session.createProducer(request.getJMSReplyTo()).send(request);
                }
                return form(request);
            case "answer-map":
                Message asked = consumer(words[1]).receive(Long.parseLong(words[2]));
                MapMessage map = session.createMapMessage();
                map.setString("name", "pear");
                map.setInt("price", 7);
                return answer(asked, map);
            case "answer-object":
                return answer(consumer(words[1]).receive(Long.parseLong(words[2])), session.createObjectMessage("x"));
            case "identified":
                Message identified = session.createMessage();
                identified.setJMSCorrelationIDAsBytes(HexFormat.of().parseHex(words[2]));
                session.createProducer(session.createQueue(words[1])).send(identified);
                return "";
            case "leave":
                consumers.remove("").close();
                replies.delete();
                return "";
            case "request":
                replies = session.createTemporaryQueue();
                Message message = session.createTextMessage(words[2]);
                message.setJMSReplyTo(replies);
                session.createProducer(session.createQueue(words[1])).send(message);
                consumers.put("", session.createConsumer(replies));
                return replies.getQueueName();
            case "reply":
                return form(consumers.get("").receive(Long.parseLong(words[1])));
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private String answer(Message request, Message reply) throws Exception {
        reply.setJMSCorrelationID(request.getJMSCorrelationID());
        session.createProducer(request.getJMSReplyTo()).send(reply);
        return form(request);
    }

    private MessageConsumer consumer(String destination) throws Exception {
        MessageConsumer found = consumers.get(destination);
        if (found == null) {
            String name = destination.substring(destination.indexOf(':') + 1);
            boolean queue = destination.startsWith("queue:");
            found = session.createConsumer(queue ? session.createQueue(name) : session.createTopic(name));
            consumers.put(destination, found);
        }
        return found;
    }

    private static String form(Message message) throws Exception {
        StringBuilder line = new StringBuilder();
        if (message == null) {
            return "";
        }
        if (message instanceof TextMessage) {
            add(line, "text", ((TextMessage) message).getText());
        } else if (message instanceof BytesMessage) {
            byte[] body = new byte[(int) ((BytesMessage) message).getBodyLength()];
            ((BytesMessage) message).readBytes(body);
            add(line, "bytes", new String(body, StandardCharsets.ISO_8859_1));
        } else {
            add(line, "class", message.getClass().getName());
        }
        add(line, "JMSDestination", spelt(message.getJMSDestination()));
        add(line, "JMSReplyTo", spelt(message.getJMSReplyTo()));
        add(line, "JMSCorrelationID", message.getJMSCorrelationID());
        byte[] id = message.getJMSCorrelationIDAsBytes();
        add(line, "JMSCorrelationIDAsBytes", id == null ? null : HexFormat.of().formatHex(id));
        add(line, "JMSType", message.getJMSType());
        add(line, "JMSPriority", message.getJMSPriority());
        add(line, "JMSExpiration", message.getJMSExpiration());
        add(line, "JMSTimestamp", message.getJMSTimestamp());
        add(line, "JMSDeliveryTime", message.getJMSDeliveryTime());
        add(line, "JMSRedelivered", message.getJMSRedelivered());
        add(line, "JMSMessageID", message.getJMSMessageID());
        add(line, "JMSDeliveryMode", message.getJMSDeliveryMode() == DeliveryMode.PERSISTENT);
        for (Object name : Collections.list(message.getPropertyNames())) {
            Object value = message.getObjectProperty((String) name);
            add(line, "property " + name, value);
            add(line, "class " + name, value == null ? null : value.getClass().getSimpleName());
        }
        return line.toString();
    }

    private static void add(StringBuilder line, String name, Object value) {
        if (value != null) {
            line.append(line.length() == 0 ? "" : "&").append(encoded(name)).append('=').append(encoded(value));
        }
    }

    private static String encoded(Object value) {
        return URLEncoder.encode(Objects.toString(value), StandardCharsets.UTF_8);
    }

    private static String spelt(Destination destination) throws Exception {
        if (destination == null) {
            return null;
        }
        String kind = destination.getClass().getSimpleName();
        return kind + " " + (destination instanceof Queue ? ((Queue) destination).getQueueName() : destination);
    }
}
