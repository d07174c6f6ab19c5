import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import javax.jms.BytesMessage;
import javax.jms.Connection;
import javax.jms.ConnectionFactory;
import javax.jms.DeliveryMode;
import javax.jms.Destination;
import javax.jms.JMSException;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageEOFException;
import javax.jms.MessageProducer;
import javax.jms.ObjectMessage;
import javax.jms.Queue;
import javax.jms.Session;
import javax.jms.StreamMessage;
import javax.jms.TemporaryQueue;
import javax.jms.TextMessage;

/**
 * A JMS application for the tests: it does what the lines on its standard input say, and answers each.
 *
 * <p>Its argument is a URL for Qpid JMS, or for Artemis' own client ({@code tcp:}); or the class of another connection
 * factory, user, password, and properties of the factory as {@code name=value}. Without an argument it is many
 * applications: it prints a port, and each connection there begins with a line that is the URL; it ends with its input.
 * An error is answered by {@code FAILED} with its stack trace, and ends the application. Destinations are
 * {@code queue:NAME}, {@code topic:NAME}, and {@code rabbitmq:queue/NAME} for RabbitMQ's client with messages as other clients have them.
 *
 * <p>{@code send DESTINATION} and forms until an empty line (sends them in one transaction), {@code post DESTINATION}
 * (the same without a transaction), {@code relay DESTINATION} (the same by a producer without a destination), {@code open
 * DESTINATION} (a consumer), {@code select DESTINATION SELECTOR} (one with a selector), {@code receive DESTINATION
 * MILLISECONDS} (a message as a form, or an empty line), {@code answer DESTINATION MILLISECONDS} (the same, and it goes to
 * its JMSReplyTo), {@code request DESTINATION TEXT} (with a temporary queue as JMSReplyTo), {@code reply MILLISECONDS}
 * (what came there). Transactions that the program ends itself, in sessions that it names: {@code put NAME DESTINATION} and
 * forms until an empty line, {@code take NAME DESTINATION MILLISECONDS}, {@code commit NAME} and {@code rollback NAME}; these
 * two answer with an empty line, or with the error. A form is {@code name=value&...}; values have their type before a colon, as in {@code int:5}; bytes
 * are base64.
 */
public final class QpidClient {
    private static final String ARTEMIS = "org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory";
    private static final String QPID = "org.apache.qpid.jms.JmsConnectionFactory";
    private final Session session;
    private final Connection connection;
    private Session transacted;
    private final Map<String, Session> sessions = new HashMap<>();
    private final Map<String, MessageConsumer> consumers = new HashMap<>();

    private QpidClient(Connection connection) throws Exception {
        session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        this.connection = connection;
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments.length > 0) {
            run(arguments, lines(System.in), System.out);
            return;
        }
        try (ServerSocket server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress())) {
            System.out.println(server.getLocalPort());
            daemon(() -> haltBehind(System.in));
            while (true) {
                Socket peer = server.accept();
                daemon(() -> serve(peer));
            }
        }
    }

    private static void daemon(Runnable work) {
        Thread thread = new Thread(work);
        thread.setDaemon(true);
        thread.start();
    }

    /** Ends this process when the tests have ended, in whatever way. */
    private static void haltBehind(InputStream in) {
        try (in) {
            in.readAllBytes();
        } catch (IOException gone) {
            // Ended as well.
        }
        Runtime.getRuntime().halt(0);
    }

    private static void serve(Socket peer) {
        try (peer) {
            BufferedReader lines = lines(peer.getInputStream());
            run(new String[] {lines.readLine()}, lines, peer.getOutputStream());
        } catch (Exception gone) {
            // The test has hung up.
        }
    }

    private static BufferedReader lines(InputStream in) {
        return new BufferedReader(new InputStreamReader(in, StandardCharsets.UTF_8));
    }

    private static void run(String[] arguments, BufferedReader lines, OutputStream to) throws Exception {
        PrintStream out = new PrintStream(to, true, StandardCharsets.UTF_8);
        try (Connection connection = connect(arguments)) {
            connection.start();
            QpidClient client = new QpidClient(connection);
            out.println("ready");
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                out.println(client.perform(line.split(" ", 3), lines));
            }
        } catch (Exception | LinkageError error) {
            StringWriter trace = new StringWriter();
            error.printStackTrace(new PrintWriter(trace));
            out.println("FAILED " + trace.toString().replace("\n", "  "));
        }
    }

    private static Connection connect(String[] arguments) throws Exception {
        if (arguments.length > 1) {
            Object factory = Class.forName(arguments[0]).getConstructor().newInstance();
            for (int number = 3; number < arguments.length; number++) {
                String[] parts = arguments[number].split("=", 2);
                set(factory, parts[0], parts[1]);
            }
            return ((ConnectionFactory) factory).createConnection(arguments[1], arguments[2]);
        }
        boolean isCore = arguments[0].startsWith("tcp:");
        Object factory = Class.forName(isCore ? ARTEMIS : QPID).getConstructor(String.class).newInstance(arguments[0]);
        if (!isCore) {
            set(factory, "validatePropertyNames", "false");
            set(factory, "populateJMSXUserID", "false");
        }
        return ((ConnectionFactory) factory).createConnection();
    }

    /** Sets a bean property, or one of OpenMQ's factory, which has none. */
    private static void set(Object factory, String name, String text) throws Exception {
        String setter = "set" + Character.toUpperCase(name.charAt(0)) + name.substring(1);
        for (Method method : factory.getClass().getMethods()) {
            if (method.getName().equals(setter) && method.getParameterCount() == 1) {
                Class<?> type = method.getParameterTypes()[0];
                if (type == int.class) {
                    method.invoke(factory, Integer.parseInt(text));
                } else if (type == boolean.class) {
                    method.invoke(factory, Boolean.parseBoolean(text));
                } else {
                    method.invoke(factory, text);
                }
                return;
            }
        }
        factory.getClass().getMethod("setProperty", String.class, String.class).invoke(factory, name, text);
    }

    private String perform(String[] words, BufferedReader lines) throws Exception {
        switch (words[0]) {
            case "send":
                if (transacted == null) {
                    transacted = connection.createSession(true, Session.SESSION_TRANSACTED);
                }
                send(transacted, transacted.createProducer(destination(words[1])), null, lines);
                return "";
            case "put":
                MessageProducer producer = session(words[1]).createProducer(destination(words[2]));
                for (String line = lines.readLine(); !line.isEmpty(); line = lines.readLine()) {
                    send(producer, null, fields(line));
                }
                producer.close();
                return "";
            case "take":
                String[] what = words[2].split(" ");
                String key = words[1] + " " + what[0];
                if (!consumers.containsKey(key)) {
                    consumers.put(key, session(words[1]).createConsumer(destination(what[0])));
                }
                return form(consumers.get(key).receive(Long.parseLong(what[1])));
            case "commit":
                return end(() -> session(words[1]).commit());
            case "rollback":
                return end(() -> session(words[1]).rollback());
            case "post":
                send(session, session.createProducer(destination(words[1])), null, lines);
                return "";
            case "relay":
                send(session, session.createProducer(null), destination(words[1]), lines);
                return "";
            case "open":
                consumer(words[1]);
                return "";
            case "select":
                consumers.put(words[1], session.createConsumer(destination(words[1]), words[2]));
                return "";
            case "receive":
                return form(consumer(words[1]).receive(Long.parseLong(words[2])));
            case "answer":
                Message request = consumer(words[1]).receive(Long.parseLong(words[2]));
                if (request != null) {
                    MessageProducer answers = session.createProducer(request.getJMSReplyTo());
                    answers.send(request);
                    answers.close();
                }
                return form(request);
            case "request":
                TemporaryQueue replies = session.createTemporaryQueue();
                Message message = session.createTextMessage(words[2]);
                message.setJMSReplyTo(replies);
                session.createProducer(destination(words[1])).send(message);
                consumers.put("", session.createConsumer(replies));
                return "";
            case "reply":
                return form(consumers.get("").receive(Long.parseLong(words[1])));
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private interface End {
        void end() throws Exception;
    }

    private static String end(End transaction) throws Exception {
        try {
            transaction.end();
            return "";
        } catch (JMSException error) {
            return (error.getClass().getSimpleName() + ": " + error.getMessage()).replaceAll("\\s+", " ");
        }
    }

    private Session session(String name) throws Exception {
        if (!sessions.containsKey(name)) {
            sessions.put(name, connection.createSession(true, Session.SESSION_TRANSACTED));
        }
        return sessions.get(name);
    }

    private void send(Session session, MessageProducer producer, Destination to, BufferedReader lines)
            throws Exception {
        int sent = 0;
        for (String line = lines.readLine(); !line.isEmpty(); line = lines.readLine()) {
            send(producer, to, fields(line));
            if (++sent % 1000 == 0 && session.getTransacted()) {
                session.commit();
            }
        }
        if (session.getTransacted()) {
            session.commit();
        }
        producer.close();
    }

    private void send(MessageProducer producer, Destination to, Map<String, String> fields) throws Exception {
        Message message = message(fields);
        int mode = DeliveryMode.PERSISTENT;
        int priority = Message.DEFAULT_PRIORITY;
        long ttl = 0;
        for (Map.Entry<String, String> each : fields.entrySet()) {
            String name = each.getKey();
            String value = each.getValue();
            if (name.startsWith("property ")) {
                message.setObjectProperty(name.substring(9), value(value));
            } else if (name.equals("JMSCorrelationID")) {
                message.setJMSCorrelationID(value);
            } else if (name.equals("JMSType")) {
                message.setJMSType(value);
            } else if (name.equals("JMSReplyTo")) {
                message.setJMSReplyTo(destination(value));
            } else if (name.equals("JMSXGroupID")) {
                message.setStringProperty(name, value);
            } else if (name.equals("JMSXGroupSeq")) {
                message.setIntProperty(name, Integer.parseInt(value));
            } else if (name.equals("JMSDeliveryMode")) {
                mode = value.equals("PERSISTENT") ? DeliveryMode.PERSISTENT : DeliveryMode.NON_PERSISTENT;
            } else if (name.equals("JMSPriority")) {
                priority = Integer.parseInt(value);
            } else if (name.equals("JMSExpiration")) {
                ttl = Long.parseLong(value) - System.currentTimeMillis();
            }
        }
        if (to == null) {
            producer.send(message, mode, priority, ttl);
        } else {
            producer.send(to, message, mode, priority, ttl);
        }
    }

    private Message message(Map<String, String> fields) throws Exception {
        String body = fields.getOrDefault("body", "");
        switch (fields.getOrDefault("type", "text")) {
            case "bytes":
                BytesMessage bytes = session.createBytesMessage();
                bytes.writeBytes(Base64.getDecoder().decode(body));
                return bytes;
            case "map":
                MapMessage map = session.createMapMessage();
                for (Map.Entry<String, String> each : fields.entrySet()) {
                    if (each.getKey().startsWith("entry ")) {
                        map.setObject(each.getKey().substring(6), value(each.getValue()));
                    }
                }
                return map;
            case "stream":
                StreamMessage stream = session.createStreamMessage();
                for (int number = 0; fields.containsKey("item " + number); number++) {
                    stream.writeObject(value(fields.get("item " + number)));
                }
                return stream;
            case "object":
                return session.createObjectMessage((java.io.Serializable) value(body));
            case "empty":
                return session.createMessage();
            default:
                return session.createTextMessage(body);
        }
    }

    private static Object value(String typed) {
        String[] parts = typed.split(":", 2);
        String text = parts.length > 1 ? parts[1] : "";
        switch (parts[0]) {
            case "boolean":
                return Boolean.valueOf(text);
            case "byte":
                return Byte.valueOf(text);
            case "short":
                return Short.valueOf(text);
            case "int":
                return Integer.valueOf(text);
            case "long":
                return Long.valueOf(text);
            case "float":
                return Float.valueOf(text);
            case "double":
                return Double.valueOf(text);
            case "char":
                return text.charAt(0);
            case "bytes":
                return Base64.getDecoder().decode(text);
            case "null":
                return null;
            case "list":
                return new ArrayList<>(Arrays.asList(text.split(",")));
            case "map":
                return new TreeMap<>(Collections.singletonMap("key", text));
            default:
                return text;
        }
    }

    @SuppressWarnings("unchecked")
    private static String typed(Object value) {
        if (value == null) {
            return "null:";
        }
        if (value instanceof byte[]) {
            return "bytes:" + Base64.getEncoder().encodeToString((byte[]) value);
        }
        if (value instanceof List) {
            return "list:" + String.join(",", (List<String>) value);
        }
        if (value instanceof Map) {
            return "map:" + ((Map<?, ?>) value).get("key");
        }
        String type = value.getClass().getSimpleName().toLowerCase();
        return (type.equals("integer") ? "int" : type.equals("character") ? "char" : type) + ":" + value;
    }

    private Destination destination(String text) throws Exception {
        String[] parts = text.split(":", 2);
        if (parts[0].equals("rabbitmq")) {
            String[] place = parts[1].split("/");
            return (Destination) Class.forName("com.rabbitmq.jms.admin.RMQDestination")
                    .getConstructor(String.class, String.class, String.class, String.class)
                    .newInstance(place[1], place[0].equals("queue") ? "" : "amq.topic", place[1], place[1]);
        }
        return parts[0].equals("topic") ? session.createTopic(parts[1]) : session.createQueue(parts[1]);
    }

    private MessageConsumer consumer(String destination) throws Exception {
        for (int left = 30; !consumers.containsKey(destination); left--) {
            try {
                consumers.put(destination, session.createConsumer(destination(destination)));
            } catch (JMSException lost) {
                // The client connects again, but gives up the call during which it has lost the broker.
                if (left == 0 || !String.valueOf(lost.getMessage()).startsWith("AMQ219")) {
                    throw lost;
                }
                Thread.sleep(1000);
            }
        }
        return consumers.get(destination);
    }

    private static String form(Message message) throws Exception {
        if (message == null) {
            return "";
        }
        Map<String, String> fields = new TreeMap<>();
        fields.put("JMSMessageID", message.getJMSMessageID());
        fields.put("JMSCorrelationID", message.getJMSCorrelationID());
        fields.put("JMSType", message.getJMSType());
        fields.put("JMSPriority", String.valueOf(message.getJMSPriority()));
        fields.put("JMSTimestamp", String.valueOf(message.getJMSTimestamp()));
        fields.put("JMSExpiration", String.valueOf(message.getJMSExpiration()));
        fields.put("JMSRedelivered", String.valueOf(message.getJMSRedelivered()));
        fields.put(
                "JMSDeliveryMode",
                message.getJMSDeliveryMode() == DeliveryMode.PERSISTENT ? "PERSISTENT" : "NON_PERSISTENT");
        if (message.getJMSReplyTo() != null) {
            Destination to = message.getJMSReplyTo();
            fields.put("JMSReplyTo", (to instanceof Queue ? "queue:" : "topic:") + to);
        }
        Destination destination = message.getJMSDestination();
        fields.put("JMSDestination", (destination instanceof Queue ? "queue:" : "topic:") + destination);
        for (Object name : Collections.list(message.getPropertyNames())) {
            fields.put("property " + name, typed(message.getObjectProperty((String) name)));
        }
        body(message, fields);
        StringBuilder form = new StringBuilder();
        for (Map.Entry<String, String> each : fields.entrySet()) {
            if (each.getValue() != null) {
                form.append(form.length() == 0 ? "" : "&").append(encoded(each.getKey()));
                form.append('=').append(encoded(each.getValue()));
            }
        }
        return form.toString();
    }

    private static void body(Message message, Map<String, String> fields) throws Exception {
        if (message instanceof TextMessage) {
            fields.put("type", "text");
            fields.put("body", ((TextMessage) message).getText());
        } else if (message instanceof BytesMessage) {
            byte[] bytes = new byte[(int) ((BytesMessage) message).getBodyLength()];
            ((BytesMessage) message).readBytes(bytes);
            fields.put("type", "bytes");
            fields.put("body", Base64.getEncoder().encodeToString(bytes));
        } else if (message instanceof MapMessage) {
            fields.put("type", "map");
            for (Object name : Collections.list(((MapMessage) message).getMapNames())) {
                fields.put("entry " + name, typed(((MapMessage) message).getObject((String) name)));
            }
        } else if (message instanceof StreamMessage) {
            fields.put("type", "stream");
            try {
                for (int number = 0; ; number++) {
                    fields.put("item " + number, typed(((StreamMessage) message).readObject()));
                }
            } catch (MessageEOFException end) {
                return;
            }
        } else if (message instanceof ObjectMessage) {
            fields.put("type", "object");
            fields.put("body", typed(((ObjectMessage) message).getObject()));
        } else {
            fields.put("type", "empty");
        }
    }

    private static Map<String, String> fields(String form) {
        Map<String, String> fields = new TreeMap<>();
        for (String pair : form.split("&")) {
            String[] parts = pair.split("=", 2);
            fields.put(decoded(parts[0]), decoded(parts[1]));
        }
        return fields;
    }

    private static String encoded(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8);
    }

    private static String decoded(String text) {
        return URLDecoder.decode(text, StandardCharsets.UTF_8);
    }
}
