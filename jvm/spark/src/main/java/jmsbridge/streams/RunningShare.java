package jmsbridge.streams;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import jmsbridge.serdes.HttpRegistry;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/** What a share keeps from one batch to the next: its consumer, its publisher and its state. */
final class RunningShare {
  private static final Map<String, RunningShare> ALL = new ConcurrentHashMap<>();
  private static final int CLOSE_SECONDS = 15;
  private static final int FUNCTION_SECONDS = 3;
  private static final long MOST_CACHE_BYTES = 32L << 20;
  /** All shares' caches together take at most this part of the heap. */
  private static final long CACHE_PART = 8;
  /** While records wait, processing takes at least so many times as long as commits. */
  private static final long COMMIT_PART = 20;
  private static final Map<String, GlobalReader> GLOBALS = new ConcurrentHashMap<>();
  private static final Map<String, Pace> PACES = new ConcurrentHashMap<>();

  private final String run;
  private final int number;
  private final RunSettings settings;
  private final Set<TopicPartition> partitions = new HashSet<>();
  private final ShareConsumer consumer;
  /** Null if no node depends on the order of an internal topic. */
  private final Gate gate;
  private final ClockReadings readings = new ClockReadings(System::currentTimeMillis);
  private Publisher publisher;
  private final PythonWorker python;
  private final RecordMark mark;
  private final RocksStore rocks;
  private final CachedStore store;
  private final AtomicLong records = new AtomicLong();
  private volatile long stateBytes;
  private volatile long due = Long.MIN_VALUE;
  private volatile long batch;
  private final GlobalReader globals;
  private Task task;
  private final Object reading = new Object();
  /** Reads the state for other threads, under the lock {@link #reading}; null: nobody has asked. */
  private Task reader;
  private ConsumerRecord<byte[], byte[]> current;
  private ShareRange range;
  /** Null if no node follows the clock. */
  private final ShareClock clock;
  /** What the clock made due in an earlier run, and this one has not repeated yet. */
  private Deque<Ticks.Tick> ticksAhead = new ArrayDeque<>();
  private long committedAt;
  /** Time that the last commit took. */
  private long commitNanos;
  private final Semaphore inUse = new Semaphore(1);

  private RunningShare(String run, int share, RunSettings settings) {
    this.run = run;
    this.number = share;
    this.settings = settings;
    settings.partitions().forEach((topic, count) -> {
      if (share < count) {
        partitions.add(new TopicPartition(topic, share));
      }
    });
    gate = gate();
    consumer = new ShareConsumer(settings, partitions, gate, readings);
    clock = settings.program().followsClock() ? new ShareClock(consumer) : null;
    python = new PythonWorker(settings.program().python());
    globals = globals(run, settings);
    mark = new RecordMark(settings.marks(), share);
    try {
      rocks = new RocksStore(settings.folder(), share, settings.firstBatch(share), settings.tables());
    } catch (IOException failure) {
      throw new UncheckedIOException(failure);
    }
    long fairBytes = Runtime.getRuntime().maxMemory() / (CACHE_PART * settings.shares());
    store = new CachedStore(rocks, Math.min(MOST_CACHE_BYTES, fairBytes));
  }

  private Gate gate() {
    boolean isPaced = settings.order().isOneProcess() && settings.feeders() > 1;
    if (!isPaced && !settings.order().hasFollowers()) {
      return null;
    }
    Pace pace = isPaced ? PACES.computeIfAbsent(run, any -> new Pace(settings.feeders())) : null;
    return new Gate(settings.order(), pace, number, this::deliver);
  }

  /** Waits until Kafka has all that was made of the records so far. */
  private void deliver() {
    task.flush();
    publisher.awaitSent();
  }

  /** The reader of the global tables of a run, one for all its shares in this JVM; null if it has none. */
  private static GlobalReader globals(String run, RunSettings settings) {
    if (settings.program().globalTables().isEmpty()) {
      return null;
    }
    return GLOBALS.computeIfAbsent(run, any -> new GlobalReader(settings));
  }

  /** The share of a run in this JVM; made if it is not there. */
  static RunningShare of(String run, int share, RunSettings settings) {
    return ALL.computeIfAbsent(run + "/" + share, any -> new RunningShare(run, share, settings));
  }

  /** Closes the shares of a run, whose query has ended. */
  static void closeAll(String run) {
    PACES.remove(run);
    GlobalReader reader = GLOBALS.remove(run);
    if (reader != null) {
      reader.close();
    }
    ALL.entrySet().removeIf(each -> {
      boolean isOwn = each.getKey().startsWith(run + "/");
      if (isOwn) {
        each.getValue().close();
      }
      return isOwn;
    });
  }

  /** Reads the state of a share with all that it has processed so far; IllegalStateException if it cannot be read. */
  static StatePage read(String run, int share, StatePage.Question question) {
    RunningShare found = ALL.get(run + "/" + share);
    try {
      if (found != null) {
        return found.read(question);
      }
    } catch (IllegalStateException closed) {
      throw new IllegalStateException("share %d cannot be read now: %s".formatted(share, closed.getMessage()), closed);
    }
    throw new IllegalStateException("share %d has not begun to run in this process".formatted(share));
  }

  private StatePage read(StatePage.Question question) {
    synchronized (reading) {
      if (reader == null) {
        reader = new Task(settings.program().copy(), store.live());
      }
      return reader.state(question);
    }
  }

  /** Copies the state of all shares in this process into the checkpoint, if it is time for that. */
  static void maintainAll() {
    ALL.values().forEach(share -> share.rocks.maintain());
  }

  /** The figures of all shares in this process. */
  static List<ShareFigures> figures() {
    List<ShareFigures> figures = new ArrayList<>();
    ALL.values().forEach(share -> figures.add(share.figuresOfShare()));
    GLOBALS.forEach((run, reader) -> {
      Map<String, Long> counts = new HashMap<>();
      reader.rejected().forEach((node, count) -> counts.put(node + "\trejected_records", count));
      figures.add(new ShareFigures(run, -1, 0, 0, Map.of(), 0, counts, reader.gaps(), Long.MAX_VALUE, ""));
    });
    return figures;
  }

  private ShareFigures figuresOfShare() {
    return new ShareFigures(
        run, number, batch, records.get(), consumer.next(), stateBytes, counts(), consumer.gaps(), due,
        HttpRegistry.troubles());
  }

  /** Records that nodes did not process in this process so far. */
  private Map<String, Long> counts() {
    Task running = task;
    return running == null ? Map.of() : running.counts();
  }

  ShareConsumer consumer() {
    return consumer;
  }

  /** Takes note of what the task reads. */
  void follow(ShareRange of) {
    range = of;
  }

  /** Begins a batch, with the state as the batches before it left it. */
  void begin(long batch) {
    // Kafka's clients and the store serve one thread at a time: a run that ends waits until the batch has ended.
    inUse.acquireUninterruptibly();
    this.batch = batch;
    try {
      readings.begin();
      if (!store.load(batch)) {
        open();
      }
      committedAt = System.nanoTime();
      if (clock != null) {
        clock.begin();
      }
      if (gate != null) {
        gate.begin(batch);
      }
    } catch (Exception failure) {
      // Spark's state store throws checked exceptions, too.
      inUse.release();
      throw failure;
    }
  }

  /**
   * Makes task and publisher anew, since the present ones are not as the batch before has left them. Another executor may
   * have processed that batch, and its publisher has shut this one out.
   */
  private void open() {
    settings.dropped().forEach(store::removeAll);
    Map<String, Long> before = counts();
    Program program = settings.program().copy();
    if (globals != null) {
      globals.share(program);
    }
    closeTask();
    publisher = new Publisher(settings, String.valueOf(number), partitions, readings);
    task = new Task(program, store, publisher, python, readings);
    ticksAhead = publisher.ticksAfter(task.reached());
    task.goOnCounting(before);
  }

  /** Says which record the task has read last; null: none came in time. */
  void has(ConsumerRecord<byte[], byte[]> record) {
    current = record;
  }

  /** Processes the record that the task has read last, and commits outputs if it is time for that. */
  void process() {
    if (globals != null) {
      globals.check();
    }
    repeatTicks();
    task.batch(consumer.isBatch());
    task.clock(consumer.isBatch() ? range.clock() : System.currentTimeMillis());
    if (current != null) {
      processCurrent();
      records.incrementAndGet();
    } else {
      task.flush();
    }
    followClock();
    if (current == null || !consumer.hasNext()) {
      publisher.handOver();
    }
    if (isCommitDue()) {
      long begun = System.nanoTime();
      task.flush();
      publisher.commit(consumer.next());
      committedAt = System.nanoTime();
      commitNanos = committedAt - begun;
    }
  }

  /** Has nodes do once more what the clock made due in real time, in an earlier run, before the present record. */
  private void repeatTicks() {
    if (!ticksAhead.isEmpty()) {
      long position = current == null ? position() : current.offset();
      while (!ticksAhead.isEmpty() && ticksAhead.peek().offset() <= position) {
        tick(ticksAhead.peek(), ticksAhead.poll().clock());
      }
    }
  }

  /** In real time, has nodes do what the clock makes due. */
  private void followClock() {
    if (clock == null || consumer.isBatch() || !ticksAhead.isEmpty() || isFull()) {
      return;
    }
    long reached = clock.reached(task);
    if (reached != Positions.NEVER) {
      tick(new Ticks.Tick(position(), reached), reached);
    }
  }

  /** Whether there may be no room for a further tick beside a position. */
  private boolean isFull() {
    return publisher.ticks().isFull() || readings.isCrowded();
  }

  /** The offset behind the last record. A topology that follows the clock in real time reads one topic alone. */
  private long position() {
    return consumer.next().values().stream().mapToLong(Long::longValue).max().orElse(0);
  }

  private void tick(Ticks.Tick tick, long shown) {
    publisher.ticks().add(tick);
    task.clock(shown);
    task.tick(tick.clock());
  }

  /** While records wait, commits may take a small part of the time alone: nothing is processed meanwhile. */
  private boolean isCommitDue() {
    long since = System.nanoTime() - committedAt;
    boolean isLate = since >= COMMIT_PART * commitNanos;
    return since >= settings.commitMs() * 1_000_000 && (isLate || consumer.isCaughtUp());
  }

  private void processCurrent() {
    mark.begin(current);
    try {
      if (settings.isSkipped(current)) {
        task.setAside(current);
      } else {
        task.process(current);
      }
    } catch (RuntimeException failure) {
      // The batch fails and says why. Errors end the JVM, and then the mark says at which record.
      mark.end();
      throw failure;
    }
    mark.end();
  }

  /** Ends a batch: first the outputs, then the state that they come of. */
  void end() {
    try {
      task.flush();
      current = null;
      repeatTicks();
      if (range.tick() != Positions.NEVER) {
        tick(new Ticks.Tick(Ticks.END, range.tick()), range.clock());
      }
      publisher.commit(consumer.next());
      if (gate != null && consumer.isBatch()) {
        gate.end();
      }
      if (!settings.isExact()) {
        consumer.note();
      }
      task.save();
      store.commit();
      publisher.ticks().clear();
      stateBytes = rocks.bytes();
      due = task.due();
    } finally {
      inUse.release();
    }
  }

  /** Gives a batch up. */
  void fail() {
    try {
      // It may be in the middle of an answer.
      python.close();
      store.rollBack();
    } finally {
      inUse.release();
    }
  }

  /** Closes the share once its batch has ended; IllegalStateException if that takes longer than the limit. */
  private void close() {
    try {
      boolean hasEnded = inUse.tryAcquire(FUNCTION_SECONDS, TimeUnit.SECONDS);
      if (!hasEnded) {
        // A batch that waits for a function does not end by itself, and the function's process would live on.
        python.kill();
        hasEnded = inUse.tryAcquire(CLOSE_SECONDS, TimeUnit.SECONDS);
      }
      if (!hasEnded) {
        throw new IllegalStateException("a batch did not end within %d s".formatted(CLOSE_SECONDS));
      }
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException(interrupted);
    }
    closeTask();
    consumer.close();
    store.close();
    synchronized (reading) {
      if (reader != null) {
        reader.release();
      }
    }
  }

  private void closeTask() {
    if (task != null) {
      task.release();
    }
    python.close();
    if (publisher != null) {
      publisher.close();
    }
  }
}
