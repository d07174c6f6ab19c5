import javax.jms.Connection;
import javax.jms.ConnectionFactory;
import javax.jms.DeliveryMode;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Queue;
import javax.jms.Session;
import javax.jms.TextMessage;

/**
 * A bare loop of a JMS client: {@code CLASS URL send|receive QUEUE COUNT BATCH [PROPERTY]}; prints milliseconds for all.
 *
 * <p>Each message that is sent gets an id of its own in the property, if there is one.
 */
public final class JmsBare {
    public static void main(String[] arguments) throws Exception {
        ConnectionFactory factory = (ConnectionFactory)
                Class.forName(arguments[0]).getConstructor(String.class).newInstance(arguments[1]);
        int count = Integer.parseInt(arguments[4]);
        int batch = Integer.parseInt(arguments[5]);
        String identity = arguments.length > 6 ? arguments[6] : null;
        try (Connection connection = factory.createConnection()) {
            Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
            boolean isReceiver = arguments[2].equals("receive");
            MessageConsumer consumer = isReceiver ? session.createConsumer(session.createQueue(arguments[3])) : null;
            connection.start();
            long begin = System.nanoTime();
            if (!isReceiver) {
                MessageProducer producer = session.createProducer(null);
                Queue queue = session.createQueue(arguments[3]);
                for (int n = 1; n <= count; n++) {
                    TextMessage message = session.createTextMessage("x".repeat(400));
                    message.setJMSCorrelationID("key-" + n % 1000);
                    message.setStringProperty("region", "emea");
                    message.setDoubleProperty("amount", n + 0.25);
                    if (identity != null) {
                        message.setStringProperty(identity, begin + "/" + n);
                    }
                    producer.send(queue, message, DeliveryMode.PERSISTENT, 4, 0);
                    if (n % batch == 0) {
                        session.commit();
                    }
                }
            } else {
                long read = 0;
                for (int n = 1; n <= count; n++) {
                    Message message = consumer.receive();
                    read += ((TextMessage) message).getText().length();
                    for (Object name : java.util.Collections.list(message.getPropertyNames())) {
                        read += message.getObjectProperty((String) name).hashCode();
                    }
                    if (n % batch == 0) {
                        session.commit();
                    }
                }
            }
            session.commit();
            System.out.println((System.nanoTime() - begin) / 1_000_000);
        }
    }
}
