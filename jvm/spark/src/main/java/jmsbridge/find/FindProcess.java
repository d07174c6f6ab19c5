package jmsbridge.find;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.DataOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import jmsbridge.predicate.Bounds;
import jmsbridge.serdes.Documents;
import jmsbridge.serdes.HttpRegistry;
import jmsbridge.serdes.RegistryOutageException;
import jmsbridge.serdes.RegistrySettings;
import jmsbridge.serdes.SchemaRegistry;
import jmsbridge.serdes.SourceSchemas;
import org.apache.kafka.common.errors.AuthenticationException;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.RetriableException;

/**
 * Main program of the process that reads topics for a search, with a thread for each core. It takes rounds, a line of
 * JSON each, until its standard input ends, and answers each with frames: a letter, and what belongs to it.
 */
public final class FindProcess {
  /** Numbers of offsets read, records, and offsets removed follow, of the round so far. */
  private static final int PROGRESS = 'P';
  /** A record follows. */
  private static final int HIT = 'H';
  /** The round is read; a boolean follows: whether more records were found than wanted. */
  private static final int DONE = 'D';
  /** A letter for the kind of failure and a text follow; the process ends. */
  private static final int FAILED = 'F';
  private static final long PROGRESS_MS = 200;

  private final DataOutputStream out;
  private final ExecutorService threads;
  private final List<PieceReader> readers = new ArrayList<>();

  private FindProcess(DataOutputStream out, JsonNode question) {
    this.out = out;
    int[] bounds = new ObjectMapper().convertValue(question.get("bounds"), int[].class);
    Bounds.use(new Bounds(bounds[0], bounds[1], bounds[2]));
    readSchemas(question.get("registry"), question.get("sources"));
    Map<String, Object> settings = new HashMap<>();
    question.get("kafka").properties().forEach(each -> settings.put(each.getKey(), each.getValue().asText()));
    int count = Runtime.getRuntime().availableProcessors();
    for (int number = 0; number < count; number++) {
      JsonNode filters = question.get("filters");
      IdFilters writer = filters.isNull() ? null : new IdFilters(filters);
      readers.add(new PieceReader(settings, new Criteria(question.get("criteria")), writer));
    }
    threads = Executors.newFixedThreadPool(count, task -> {
      Thread thread = new Thread(task);
      thread.setDaemon(true);
      return thread;
    });
  }

  /**
   * Runs it.
   *
   * @param arguments the file with the question, and the settings of Kafka's consumers
   */
  public static void main(String[] arguments) throws IOException {
    // What libraries print must not be taken for an answer.
    DataOutputStream out = new DataOutputStream(new BufferedOutputStream(new FileOutputStream(FileDescriptor.out)));
    System.setOut(System.err);
    ObjectMapper json = new ObjectMapper();
    try {
      FindProcess process = new FindProcess(out, json.readTree(Files.readAllBytes(Path.of(arguments[0]))));
      BufferedReader rounds = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
      for (String line = rounds.readLine(); line != null; line = rounds.readLine()) {
        process.read(new Round(json.readTree(line)));
      }
    } catch (ExecutionException failure) {
      fail(out, failure.getCause());
    } catch (InterruptedException | RuntimeException failure) {
      fail(out, failure);
    }
    System.exit(0);
  }

  /** Has predicates read bodies with the schemas of {@code engine/schemas/schema_json.py}; both may be null. */
  private static void readSchemas(JsonNode registry, JsonNode sources) {
    if (sources.isNull()) {
      return;
    }
    SchemaRegistry schemas = null;
    if (!registry.isNull()) {
      schemas = new HttpRegistry(RegistrySettings.of(registry));
    }
    Documents.use(SourceSchemas.documents(schemas, sources.asText()));
  }

  private void read(Round round) throws IOException, ExecutionException, InterruptedException {
    List<Future<?>> work = new ArrayList<>();
    readers.forEach(reader -> work.add(threads.submit(() -> {
      try {
        reader.read(round);
      } finally {
        // After a failure of one thread, no other one begins with a piece.
        round.stop();
      }
    })));
    for (Future<?> task : work) {
      while (!isDone(task)) {
        progress(round);
      }
    }
    progress(round);
    for (Hit hit : round.newest.hits()) {
      out.writeByte(HIT);
      hit.write(out);
    }
    out.writeByte(DONE);
    out.writeBoolean(round.newest.leavesSome());
    out.flush();
  }

  private static boolean isDone(Future<?> work) throws ExecutionException, InterruptedException {
    try {
      work.get(PROGRESS_MS, TimeUnit.MILLISECONDS);
      return true;
    } catch (java.util.concurrent.TimeoutException goesOn) {
      return false;
    }
  }

  private void progress(Round round) throws IOException {
    out.writeByte(PROGRESS);
    out.writeLong(round.read.get());
    out.writeLong(round.records.get());
    out.writeLong(round.removed.get());
    out.flush();
  }

  private static void fail(DataOutputStream out, Throwable failure) throws IOException {
    failure.printStackTrace();
    byte[] why = (failure.getMessage() == null ? failure.toString() : failure.getMessage())
        .getBytes(StandardCharsets.UTF_8);
    out.writeByte(FAILED);
    out.writeByte(kind(failure));
    out.writeInt(why.length);
    out.write(why);
    out.flush();
  }

  /** A: Kafka is away, S: the schema registry is, R: Kafka refuses, L: too much was found, E: anything else. */
  private static int kind(Throwable failure) {
    if (failure instanceof AuthorizationException || failure instanceof AuthenticationException) {
      return 'R';
    }
    if (failure instanceof RegistryOutageException) {
      return 'S';
    }
    if (failure instanceof RetriableException) {
      return 'A';
    }
    return failure instanceof Newest.TooLargeException ? 'L' : 'E';
  }
}
