import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;

/** Lists the topics of a Kafka with Java's client, for each path of a properties file that comes in a line. */
class ListTopics {
    public static void main(String[] arguments) throws Exception {
        var answers = System.out;
        // Kafka's client logs to what is the standard output when it begins.
        System.setOut(System.err);
        var lines = new BufferedReader(new InputStreamReader(System.in));
        for (String path; (path = lines.readLine()) != null; ) {
            answers.println(answer(path).replace("\n", " "));
        }
    }

    private static String answer(String path) {
        var settings = new Properties();
        try (var file = new FileInputStream(path)) {
            settings.load(file);
            try (var admin = Admin.create(settings)) {
                return String.join(" ", admin.listTopics().names().get());
            }
        } catch (Exception error) {
            var trace = new StringWriter();
            error.printStackTrace(new PrintWriter(trace, true));
            return trace.toString();
        }
    }
}
