import org.apache.activemq.broker.BrokerService;

/** An ActiveMQ Classic for the tests, which keeps its messages in memory; runs until its standard input ends. */
public final class ClassicBroker {
    public static void main(String[] arguments) throws Exception {
        BrokerService broker = new BrokerService();
        broker.setPersistent(false);
        broker.setUseJmx(false);
        broker.addConnector("tcp://127.0.0.1:" + arguments[0]);
        broker.start();
        broker.waitUntilStarted();
        System.out.println("ready");
        while (System.in.read() >= 0) {
            continue;
        }
        broker.stop();
    }
}
