import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.concurrent.locks.LockSupport;
import javax.jms.Connection;
import javax.jms.JMSException;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import javax.jms.TextMessage;
import org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory;

/** The connection factory of a client that does harm; as a program, prints a {@link Hostile} in hexadecimal digits. */
public class FailingFactory extends ActiveMQConnectionFactory {
    private String harm = "";
    private String data = "";

    public static void main(String[] arguments) throws IOException {
        Hostile hostile = new Hostile();
        hostile.file = arguments[0];
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
            out.writeObject(hostile);
        }
        System.out.println(HexFormat.of().formatHex(bytes.toByteArray()));
    }

    public void setHarm(String harm) {
        this.harm = harm;
    }

    public void setData(String data) {
        this.data = data;
    }

    @Override
    public Connection createConnection() throws JMSException {
        if (harm.equals("exits")) {
            new Thread(FailingFactory::exit).start();
        } else if (harm.equals("leaves a thread")) {
            new Thread(FailingFactory::hang).start();
        } else if (harm.equals("hangs")) {
            hang();
        } else if (harm.equals("deserialises")) {
            try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(HexFormat.of().parseHex(data)))) {
                in.readObject();
            } catch (IOException | ClassNotFoundException refused) {
                throw new JMSException(refused.toString());
            }
        }
        Connection connection = super.createConnection();
        return harm.equals("cannot read") ? throwing(Connection.class, connection) : connection;
    }

    /** What is made, whose consumers throw at a text that begins with "foreign", after they have received it. */
    private static <T> T throwing(Class<T> type, T made) {
        Class<?>[] types = {type};
        return type.cast(Proxy.newProxyInstance(FailingFactory.class.getClassLoader(), types, (proxy, method, given) -> {
            Object found;
            try {
                found = method.invoke(made, given);
            } catch (InvocationTargetException error) {
                throw error.getCause();
            }
            if (method.getName().equals("receive") && found instanceof TextMessage text && text.getText().startsWith("foreign")) {
                throw new JMSException("this is not a message of this client");
            } else if (found instanceof Session session) {
                return throwing(Session.class, session);
            } else if (found instanceof MessageConsumer consumer) {
                return throwing(MessageConsumer.class, consumer);
            }
            return found;
        }));
    }

    private static void hang() {
        System.out.println("a thread hangs");
        while (true) {
            LockSupport.park();
        }
    }

    private static void exit() {
        try {
            Thread.sleep(1000);
        } catch (InterruptedException now) {
            // Exits at once.
        }
        System.exit(3);
    }

    /** What runs code when it is deserialised. */
    public static final class Hostile implements Serializable {
        private static final long serialVersionUID = 1L;
        String file;

        private void readObject(ObjectInputStream in) throws IOException, ClassNotFoundException {
            in.defaultReadObject();
            Files.writeString(Path.of(file), "deserialised");
        }
    }
}
