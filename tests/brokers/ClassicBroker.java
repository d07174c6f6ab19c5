import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import org.apache.activemq.broker.BrokerPlugin;
import org.apache.activemq.broker.BrokerService;
import org.apache.activemq.broker.region.Destination;
import org.apache.activemq.command.ActiveMQQueue;
import org.apache.activemq.security.AuthenticationUser;
import org.apache.activemq.security.SimpleAuthenticationPlugin;

/**
 * An ActiveMQ Classic for the tests; runs until it gets a signal.
 *
 * <p>Arguments: the folder of its messages, user, password, the port of its counts, and the addresses that it listens on. {@code GET
 * /NAME} at the port of counts makes the queue of that name, and answers with the number of its messages.
 */
public final class ClassicBroker {
    private static final long MEGABYTE = 1 << 20;

    public static void main(String[] arguments) throws Exception {
        BrokerService broker = new BrokerService();
        broker.setBrokerName("classic");
        broker.setDataDirectoryFile(Path.of(arguments[0]).toFile());
        broker.setUseJmx(false);
        broker.getSystemUsage().getMemoryUsage().setLimit(64 * MEGABYTE);
        broker.getSystemUsage().getStoreUsage().setLimit(4096 * MEGABYTE);
        broker.getSystemUsage().getTempUsage().setLimit(512 * MEGABYTE);
        AuthenticationUser user = new AuthenticationUser(arguments[1], arguments[2], "all");
        broker.setPlugins(new BrokerPlugin[] {new SimpleAuthenticationPlugin(List.of(user))});
        for (int number = 4; number < arguments.length; number++) {
            broker.addConnector(arguments[number]);
        }
        broker.start();
        broker.waitUntilStarted();
        HttpServer counts = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[3])), 0);
        counts.createContext("/", exchange -> {
            byte[] answer = count(broker, exchange.getRequestURI().getPath().substring(1));
            exchange.sendResponseHeaders(200, answer.length);
            exchange.getResponseBody().write(answer);
            exchange.close();
        });
        counts.start();
        broker.waitUntilStopped();
        counts.stop(0);
    }

    private static byte[] count(BrokerService broker, String queue) {
        try {
            Destination found =
                    broker.getBroker().addDestination(broker.getAdminConnectionContext(), new ActiveMQQueue(queue), false);
            long count = found.getDestinationStatistics().getMessages().getCount();
            return String.valueOf(count).getBytes(StandardCharsets.US_ASCII);
        } catch (Exception failed) {
            throw new IllegalStateException(failed);
        }
    }
}
