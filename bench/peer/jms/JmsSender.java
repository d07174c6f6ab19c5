import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import javax.jms.CompletionListener;
import javax.jms.Connection;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.apache.qpid.jms.JmsConnectionFactory;

/**
 * Sends numbered text messages without waiting for each, and again what was not accepted, until all are.
 *
 * <p>Arguments: URL, queue, how many to warm up, how many then, bytes of each. Prints {@code accepted N} now and then, and
 * at the end {@code done SECONDS}, the time from the first send after the warm-up to the last acceptance.
 */
public final class JmsSender {
    private static final int MOST_OPEN = 5000;

    public static void main(String[] arguments) throws Exception {
        JmsConnectionFactory factory = new JmsConnectionFactory(arguments[0]);
        int warm = Integer.parseInt(arguments[2]);
        int all = warm + Integer.parseInt(arguments[3]);
        String filler = ".".repeat(Math.max(Integer.parseInt(arguments[4]) - 8, 0));
        sendAll(factory, arguments[1], filler, 0, warm);
        long begun = System.nanoTime();
        sendAll(factory, arguments[1], filler, warm, all);
        System.out.printf(java.util.Locale.ROOT, "done %.3f%n", (System.nanoTime() - begun) / 1e9);
    }

    private static void sendAll(JmsConnectionFactory factory, String queue, String filler, int from, int to)
            throws Exception {
        ConcurrentSkipListSet<Integer> left = new ConcurrentSkipListSet<>();
        for (int number = from; number < to; number++) {
            left.add(number);
        }
        while (!left.isEmpty()) {
            try (Connection connection = factory.createConnection()) {
                send(connection, queue, filler, left);
            } catch (JMSException lost) {
                System.out.println("again: " + lost.getMessage());
                Thread.sleep(200);
            }
        }
    }

    private static void send(Connection connection, String queue, String filler, ConcurrentSkipListSet<Integer> left)
            throws Exception {
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(session.createQueue(queue));
        Semaphore room = new Semaphore(MOST_OPEN);
        AtomicReference<JMSException> failure = new AtomicReference<>();
        // Qpid does not complete every send of a connection that is lost: this says that it is.
        connection.setExceptionListener(failure::set);
        for (Integer number : left) {
            if (!acquired(room, 1, failure)) {
                break;
            }
            Message message = session.createTextMessage(String.format("%08d", number) + filler);
            producer.send(message, new CompletionListener() {
                @Override
                public void onCompletion(Message sent) {
                    left.remove(number);
                    if (number % 1000 == 0) {
                        System.out.println("accepted " + number);
                    }
                    room.release();
                }

                @Override
                public void onException(Message sent, Exception error) {
                    failure.set(error instanceof JMSException ? (JMSException) error : new JMSException("" + error));
                    room.release();
                }
            });
        }
        acquired(room, MOST_OPEN, failure);
        if (failure.get() != null) {
            throw failure.get();
        }
    }

    /** Waits for room; false after a failure. */
    private static boolean acquired(Semaphore room, int permits, AtomicReference<JMSException> failure)
            throws InterruptedException {
        while (failure.get() == null) {
            if (room.tryAcquire(permits, 100, TimeUnit.MILLISECONDS)) {
                return failure.get() == null;
            }
        }
        return false;
    }
}
