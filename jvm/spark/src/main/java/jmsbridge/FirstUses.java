package jmsbridge;

import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;
import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.spark.SparkThrowableHelper;
import org.codehaus.janino.ClassBodyEvaluator;
import org.slf4j.LoggerFactory;

/**
 * First uses of libraries that a session or its first query needs later, in a thread beside the start of the session,
 * which keeps only one core busy: a parser, a compiler, and tables that a class makes when it is loaded.
 *
 * <p>Only libraries that know nothing of Spark's session are among them. Two threads that initialise classes which
 * refer to each other would wait for each other for ever.
 */
final class FirstUses {
  /** Class with the languages of the JVM, which a session makes for a page that it does not show. */
  private static final String MIME_TYPES = "org.sparkproject.jetty.http.MimeTypes";

  /** Classes with the tables of SQL's grammar, by which Spark reads the name of a column too. */
  private static final List<String> PARSER =
      List.of("org.apache.spark.sql.catalyst.parser.SqlBaseLexer", "org.apache.spark.sql.catalyst.parser.SqlBaseParser");

  private static final String COMPILED =
      "public long sum(long[] values) { long sum = 0L; for (int i = 0; i < values.length; i++) { sum += values[i]; }"
          + " return sum; }";

  private FirstUses() {}

  /** Begins them; returns at once. */
  static void begin() {
    Thread thread = new Thread(FirstUses::run, "first-uses");
    thread.setDaemon(true);
    thread.start();
  }

  private static void run() {
    try {
      Class.forName(MIME_TYPES);
      ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class);
      for (String name : PARSER) {
        Class.forName(name);
      }
      // Reads 1,000 messages, as the first query does when it finds that it has no earlier offsets.
      SparkThrowableHelper.isValidErrorClass("");
      new ClassBodyEvaluator().cook(COMPILED);
      List.of(ConsumerConfig.configDef(), ProducerConfig.configDef(), ApiKeys.values());
    } catch (Exception | LinkageError thrown) {
      LoggerFactory.getLogger(FirstUses.class).debug("left to the session", thrown);
    }
  }
}
