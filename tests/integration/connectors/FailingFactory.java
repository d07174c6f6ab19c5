import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.concurrent.locks.LockSupport;
import javax.jms.Connection;
import javax.jms.JMSException;
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
        return super.createConnection();
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
