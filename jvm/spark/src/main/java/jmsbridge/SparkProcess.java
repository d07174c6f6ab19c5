package jmsbridge;

import java.io.DataOutputStream;
import java.io.IOException;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.python.Py4JServer;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.util.SparkUncaughtExceptionHandler;

/**
 * Main program of a session's JVM. It opens the session by itself, while Python still imports its modules and looks at
 * Kafka, and obeys Python until its standard input ends.
 */
public final class SparkProcess {
  private static final CompletableFuture<SparkSession> SESSION = new CompletableFuture<>();
  private static final CompletableFuture<ClassLoader> LOADER = new CompletableFuture<>();

  private SparkProcess() {}

  /**
   * Runs it.
   *
   * @param arguments the file with Spark's settings, and the file to write for Python: port, length of the secret, secret
   */
  public static void main(String[] arguments) throws IOException {
    Thread.setDefaultUncaughtExceptionHandler(new SparkUncaughtExceptionHandler(true));
    Properties settings = new Properties();
    try (Reader reader = Files.newBufferedReader(Path.of(arguments[0]))) {
      settings.load(reader);
    }
    settings.stringPropertyNames().forEach(name -> System.setProperty(name, settings.getProperty(name)));
    SparkConf conf = new SparkConf();
    Thread opening = new Thread(() -> open(conf), "open-session");
    opening.setDaemon(true);
    opening.start();
    Py4JServer server = new Py4JServer(conf);
    server.start();
    tell(server, Path.of(arguments[1]));
    while (System.in.read() >= 0) {
      // Python writes nothing; the input ends with it.
    }
    System.exit(0);
  }

  /** The session; waits until it is open, and throws what prevents that. */
  public static SparkSession session() {
    try {
      return SESSION.join();
    } catch (CompletionException exception) {
      if (exception.getCause() instanceof RuntimeException cause) {
        throw cause;
      }
      throw exception;
    }
  }

  /**
   * Makes the calling thread, and those that it starts, find classes as Spark's tasks do. Spark compiles the code of a
   * query once for each class loader, that of the driver and that of its tasks, if they are not the same.
   */
  public static void useLoaderOfTasks() {
    Thread.currentThread().setContextClassLoader(LOADER.join());
  }

  private static void open(SparkConf conf) {
    try {
      SparkSession session = SparkSession.builder().config(conf).getOrCreate();
      SESSION.complete(session);
      // The session makes these only when they are asked for, and the first query does.
      session.sessionState();
      session.sharedState();
      if (session.sparkContext().isLocal()) {
        new JavaSparkContext(session.sparkContext()).parallelize(List.of(0), 1).foreach(
            any -> LOADER.complete(Thread.currentThread().getContextClassLoader()));
      } else {
        LOADER.complete(Thread.currentThread().getContextClassLoader());
      }
    } catch (Throwable thrown) {
      // Spark is in Scala, and throws checked exceptions undeclared.
      SESSION.completeExceptionally(thrown);
      LOADER.completeExceptionally(thrown);
    }
  }

  private static void tell(Py4JServer server, Path file) throws IOException {
    Path unfinished = Path.of(file + ".part");
    byte[] secret = server.secret().getBytes(StandardCharsets.UTF_8);
    try (DataOutputStream out = new DataOutputStream(Files.newOutputStream(unfinished))) {
      out.writeInt(server.getListeningPort());
      out.writeInt(secret.length);
      out.write(secret);
    }
    Files.move(unfinished, file, StandardCopyOption.ATOMIC_MOVE);
  }
}
