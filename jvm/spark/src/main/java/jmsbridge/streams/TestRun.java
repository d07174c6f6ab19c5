package jmsbridge.streams;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;

/** Run of a program without Kafka: one share, state in memory, internal topics read at once. */
public final class TestRun {
  /** Changes after which a version of the state is a whole copy: so few that tests make some. */
  private static final int COPIED_CHANGES = 50;

  private final Program plan;
  private long clock;
  private final ClockReadings readings = new ClockReadings(() -> clock);
  private final RocksStore rocks;
  private final CachedStore cache;
  private Program program;
  private Store store;
  private PythonWorker python;
  private Task task;
  private long version;
  private final Map<String, List<ProducerRecord<byte[], byte[]>>> outputs = new HashMap<>();
  private final Map<String, Long> ends = new HashMap<>();
  private final Deque<ConsumerRecord<byte[], byte[]>> waiting = new ArrayDeque<>();

  public TestRun(Program program) {
    plan = program;
    rocks = null;
    cache = null;
    open(new MemoryStore());
  }

  /** Creates a run whose state is in a folder, as a URI of Hadoop, behind a cache of this size. */
  public TestRun(Program program, String folder, long cacheBytes) throws IOException {
    this(program, folder, cacheBytes, null);
  }

  /** Creates a run that keeps copies of tables in a local folder, if its state is on another file system. */
  public TestRun(Program program, String folder, long cacheBytes, String tables) throws IOException {
    plan = program;
    rocks = new RocksStore(folder, 0, 0, tables, COPIED_CHANGES);
    cache = new CachedStore(rocks, cacheBytes);
    cache.load(version);
    open(cache);
  }

  private void open(Store kept) {
    store = kept;
    program = plan.copy();
    program.globalTables().forEach(each -> each.share(GlobalTable.noRows()));
    python = new PythonWorker(program.python());
    task = new Task(program, store, this::send, python, readings);
    task.batch(true);
    task.clock(clock);
  }

  /** The readings of the clock for records of a topic, as they are committed with its position. */
  public String readings(String topic) {
    return readings.committed(new TopicPartition(topic, 0));
  }

  /** Has records of a topic before a position judged by committed readings, as in a run that repeats them. */
  public void repeat(String topic, long position, String committed) {
    readings.repeat(new TopicPartition(topic, 0), position, committed);
  }

  /** Commits the state that is in a folder. */
  public void commit() {
    task.flush();
    task.save();
    cache.commit();
    cache.load(++version);
  }

  /** Stores a whole copy of the state in its folder, if there is one that is not. */
  public void maintain() {
    rocks.maintain();
  }

  /** Goes on from the last commit of the state that is in a folder. */
  public void rollBack() {
    cache.rollBack();
    cache.load(version);
    close();
    open(cache);
  }

  /** Goes on from a commit of an earlier run in the same folder, by its number. */
  public void goOn(long commit) {
    version = commit;
    rollBack();
  }

  /** Gives up what was processed since the last commit, as a task that fails. */
  public void giveUp() {
    cache.rollBack();
  }

  /** Processes a record of a topic that the program reads; headers are name, value, name, value and so on. */
  public void pipe(String topic, byte[] key, byte[] value, long time, List<Object> headers) {
    RecordHeaders made = new RecordHeaders();
    for (int at = 0; at < headers.size(); at += 2) {
      made.add(new RecordHeader((String) headers.get(at), (byte[]) headers.get(at + 1)));
    }
    for (GlobalTable each : program.globalTables()) {
      if (each.topic.equals(topic)) {
        GlobalTable.Unread unread = each.take(record(topic, key, value, time, made));
        if (unread != null) {
          task.reject(unread);
        }
        return;
      }
    }
    read(topic, key, value, time, made);
    processWaiting();
  }

  /** Takes a record that {@link #processHeld} processes with others before nodes forward what waits in them. */
  public void hold(String topic, byte[] key, byte[] value, long time) {
    read(topic, key, value, time, new RecordHeaders());
  }

  /** Processes the records that are held, as a batch, and what comes of them in internal topics as further ones. */
  public void processHeld() {
    while (!waiting.isEmpty()) {
      for (int left = waiting.size(); left > 0; left--) {
        task.process(waiting.poll());
      }
      task.flush();
    }
  }

  /** Says what the clock shows to functions that ask, in milliseconds since 1970. */
  public void clock(long now) {
    clock = now;
    task.clock(now);
  }

  /** Moves the clock on to a time: nodes do what is due by then, in the order of the times. */
  public void advanceClock(long to) {
    for (long due = task.due(); due <= to; due = task.due()) {
      task.clock(due);
      task.tick(due);
      processWaiting();
    }
    clock(to);
  }

  /** Moves the stream time of all nodes on to a time. */
  public void advance(long to) {
    task.advance(to);
    processWaiting();
  }

  private void processWaiting() {
    while (!waiting.isEmpty()) {
      task.process(waiting.poll());
      task.flush();
    }
  }

  /**
   * Takes what was published to a topic, as one array of bytes: for each record its time and the number of its fields,
   * then its key, its value, and name and value of each header, each behind its length, which is -1 for null.
   */
  public byte[] take(String topic) {
    List<ProducerRecord<byte[], byte[]>> records = outputs.remove(topic);
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    DataOutputStream out = new DataOutputStream(bytes);
    try {
      for (ProducerRecord<byte[], byte[]> each : records == null ? List.<ProducerRecord<byte[], byte[]>>of() : records) {
        Header[] headers = each.headers().toArray();
        out.writeLong(each.timestamp());
        out.writeInt(2 + 2 * headers.length);
        write(out, each.key());
        write(out, each.value());
        for (Header header : headers) {
          write(out, header.key().getBytes(StandardCharsets.UTF_8));
          write(out, header.value());
        }
      }
    } catch (IOException failure) {
      throw new UncheckedIOException(failure);
    }
    return bytes.toByteArray();
  }

  private static void write(DataOutputStream out, byte[] field) throws IOException {
    out.writeInt(field == null ? -1 : field.length);
    if (field != null) {
      out.write(field);
    }
  }

  /** Rows of the state of a node, from a place of {@link StateRows#place} on. */
  public StateRows state(String node, StateRange range, String place) {
    return rows(task, node, range, place);
  }

  /** The same of a state that is in a folder, from any thread and while records are processed. */
  public StateRows live(String node, StateRange range, String place) {
    return rows(new Task(plan.copy(), cache.live()), node, range, place);
  }

  private static StateRows rows(Task task, String node, StateRange range, String place) {
    StateRows.Shares one = new StateRows.Shares() {
      @Override
      public int count() {
        return 1;
      }

      @Override
      public StatePage read(int share, StatePage.Question question) {
        return task.state(question);
      }
    };
    return new StateRows(one, node, range, place);
  }

  /** Counters of this run, each under the name of its node, a tab and its event. */
  public Map<String, Long> counts() {
    return task.counts();
  }

  /** Number of entries of the state, of all nodes. */
  public int entries() {
    byte[] first = {};
    byte[] behind = {-1, -1, -1, -1, -1, -1};
    return store.range(first, behind).size();
  }

  /** Releases what the run holds besides memory. */
  public void close() {
    task.release();
    python.close();
  }

  private void send(String topic, byte[] key, byte[] value, long time, Header[] headers) {
    if (program.source(topic) != null) {
      read(topic, key, value, time, new RecordHeaders(headers));
    } else {
      // As Kafka's client does.
      long timestamp = time == StreamRecord.NO_TIME ? System.currentTimeMillis() : time;
      outputs.computeIfAbsent(topic, any -> new ArrayList<>())
          .add(new ProducerRecord<>(topic, null, timestamp, key, value, new RecordHeaders(headers)));
    }
  }

  private void read(String topic, byte[] key, byte[] value, long time, RecordHeaders headers) {
    waiting.add(record(topic, key, value, time, headers));
  }

  private ConsumerRecord<byte[], byte[]> record(
      String topic, byte[] key, byte[] value, long time, RecordHeaders headers) {
    long offset = ends.merge(topic, 1L, Long::sum) - 1;
    return new ConsumerRecord<>(topic, 0, offset, time, TimestampType.CREATE_TIME, -1, -1, key, value, headers,
        Optional.empty());
  }
}
