package jmsbridge.serdes;

import java.util.Collection;
import java.util.Collections;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import java.util.function.Function;

/**
 * Schemas of a registry by their ids, which are asked for together, at a bounded rate, and kept in a bounded memory.
 *
 * <p>An answer without a schema is kept for a minute: a flood of records with unknown ids costs one request an id.
 */
final class SchemaIds {
  private static final int MOST_AT_ONCE = 32;
  /** Most ids that are asked for in advance and have no answer yet; others are asked for when their records come. */
  private static final int MOST_EXPECTED = 4_096;
  private static final int MOST_SCHEMAS = 1_000;
  private static final int MOST_FAULTS = 50_000;
  private static final long FAULT_NANOS = TimeUnit.MINUTES.toNanos(1);
  /** Time between two requests of this process: a thousand a second. */
  private static final long BETWEEN_NANOS = TimeUnit.MILLISECONDS.toNanos(1);
  private static final AtomicLong TURN = new AtomicLong(System.nanoTime());
  private static final Executor THREADS = threads();

  /** Stands for the name of a format: the schema may be of any. */
  static final String ANY = "";

  /** An id of a schema of a format. */
  record Id(String type, int number) {}

  /** What the registry says of an id: its schema, why it has none, or that it is not known, since the registry is away. */
  record Answer(SchemaRegistry.Typed schema, String fault) {
    static final Answer AWAY = new Answer(null, null);
  }

  private record Fault(String text, long until) {}

  private final Function<Id, Answer> ask;
  private final BooleanSupplier isAway;
  private final Map<Id, SchemaRegistry.Typed> schemas = Collections.synchronizedMap(new Recent<>(MOST_SCHEMAS));
  private final Map<Id, Fault> faults = Collections.synchronizedMap(new Recent<>(MOST_FAULTS));
  private final Map<Id, CompletableFuture<Answer>> expected = new ConcurrentHashMap<>();

  /** Creates the schemas of a registry that {@code ask} asks, from several threads; none is expected of one away. */
  SchemaIds(Function<Id, Answer> ask, BooleanSupplier isAway) {
    this.ask = ask;
    this.isAway = isAway;
  }

  private static Executor threads() {
    ThreadPoolExecutor threads = new ThreadPoolExecutor(
        MOST_AT_ONCE, MOST_AT_ONCE, 10, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), task -> {
          Thread thread = new Thread(task, "schema ids");
          thread.setDaemon(true);
          return thread;
        });
    threads.allowCoreThreadTimeOut(true);
    return threads;
  }

  /** Begins to ask for ids of which nothing is known, unless there are too many. */
  void expect(String type, Collection<Integer> numbers) {
    for (int number : numbers) {
      Id id = new Id(type, number);
      if (expected.size() < MOST_EXPECTED && known(id) == null) {
        expected.computeIfAbsent(id, any -> CompletableFuture.supplyAsync(() -> {
          try {
            return isAway.getAsBoolean() ? Answer.AWAY : asked(id);
          } finally {
            expected.remove(id);
          }
        }, THREADS));
      }
    }
  }

  /** What is known of an id, or what the registry says now. */
  Answer get(String type, int number) throws InterruptedException {
    Id id = new Id(type, number);
    CompletableFuture<Answer> coming = expected.get(id);
    Answer known = known(id);
    if (known != null) {
      return known;
    }
    try {
      return coming == null ? asked(id) : coming.get();
    } catch (ExecutionException failure) {
      if (failure.getCause() instanceof RuntimeException thrown) {
        throw thrown;
      }
      throw new IllegalStateException(failure.getCause());
    }
  }

  private Answer known(Id id) {
    SchemaRegistry.Typed schema = schemas.get(id);
    if (schema != null) {
      return new Answer(schema, null);
    }
    Fault fault = faults.get(id);
    return fault == null || System.nanoTime() - fault.until() > 0 ? null : new Answer(null, fault.text());
  }

  private Answer asked(Id id) {
    awaitTurn();
    Answer answer = ask.apply(id);
    if (answer.schema() != null) {
      schemas.put(id, answer.schema());
    } else if (answer.fault() != null) {
      faults.put(id, new Fault(answer.fault(), System.nanoTime() + FAULT_NANOS));
    }
    return answer;
  }

  private static void awaitTurn() {
    long now = System.nanoTime();
    long turn = TURN.updateAndGet(last -> Math.max(last + BETWEEN_NANOS, now));
    try {
      TimeUnit.NANOSECONDS.sleep(turn - now);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
