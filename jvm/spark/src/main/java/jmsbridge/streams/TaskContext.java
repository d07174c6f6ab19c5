package jmsbridge.streams;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;

/** Task as its nodes know it: where they keep state, send records, count, and leave the records that they cannot process. */
final class TaskContext {
  private static final int MOST_TEXT = 500;
  /** Bytes kept of the key and of the value of a dead letter that is too large for its topic. */
  private static final int KEPT_BYTES = 64 << 10;
  /** Last header of a record without a time in an internal topic, whose records in Kafka have times. */
  private static final String NO_TIME = "jmsbridge.no-time";

  private record Event(String node, String name) {}

  /** Window of a key, from a start to an end in milliseconds since 1970. */
  record Window(long start, long end) {
    private Map<String, String> headers() {
      return Map.of(
          "jmsbridge.window-start", Long.toString(start), "jmsbridge.window-end", Long.toString(end));
    }
  }

  private final TopologyFacts topology;
  private final Store store;
  private final Output output;
  private final PythonWorker python;
  private final ClockReadings readings;
  private final Map<Event, LongAdder> counts = new ConcurrentHashMap<>();
  private ConsumerRecord<byte[], byte[]> latest;
  private ConsumerRecord<byte[], byte[]> current;
  private long clock;
  private boolean isBatch;

  TaskContext(TopologyFacts topology, Store store, Output output, PythonWorker python, ClockReadings readings) {
    this.topology = topology;
    this.store = store;
    this.output = output;
    this.python = python;
    this.readings = readings;
  }

  Store store() {
    return store;
  }

  PythonWorker python() {
    return python;
  }

  /** The clock, in milliseconds since 1970. */
  long clock() {
    return clock;
  }

  void clock(long now) {
    clock = now;
  }

  /** Says whether the records are those of a batch, at whose end nodes are flushed. */
  void batch(boolean is) {
    isBatch = is;
  }

  /** Whether nodes may keep what the present record changes until they are flushed, to forward it with later changes. */
  boolean collects() {
    return isBatch && !output.isHeldBack();
  }

  /** The record of a topic that is processed; null: none, as the clock moves on. */
  ConsumerRecord<byte[], byte[]> current() {
    return current;
  }

  /** Goes on with a record of a topic that was read now; null: with what the clock makes due. */
  void begin(ConsumerRecord<byte[], byte[]> record) {
    latest = record;
    resume(record);
  }

  /** Goes on with a record of a topic that has waited in a node: what follows comes from it. */
  void resume(ConsumerRecord<byte[], byte[]> record) {
    current = record;
    output.begin(record);
  }

  /** Goes on with the record that was read last. */
  void resumeLatest() {
    resume(latest);
  }

  /** Whether the record that was read now is later than the clock by more than some milliseconds; below 0: none is. */
  boolean isAhead(long maxAhead) {
    return readings.isAhead(current, maxAhead);
  }

  /** The record of a topic that was read now, with its bytes in the field {@code value}. */
  StreamRecord read() {
    ConsumerRecord<byte[], byte[]> record = current;
    GenericInternalRow value = record.value() == null ? null : new GenericInternalRow(new Object[] {record.value()});
    Header[] headers = record.headers().toArray();
    long time = Math.max(record.timestamp(), StreamRecord.NO_TIME);
    int last = headers.length - 1;
    if (last >= 0 && headers[last].key().equals(NO_TIME) && topology.isInternal(record.topic())) {
      headers = Arrays.copyOf(headers, last);
      time = StreamRecord.NO_TIME;
    }
    return new StreamRecord(
        record.key(), value, null, time, headers, record.topic(), record.partition(), record.offset());
  }

  /** The time of a record of an internal topic, below 0 if it has none: its time in Kafka is that of its publication. */
  static long time(ConsumerRecord<byte[], byte[]> internal) {
    return internal.headers().lastHeader(NO_TIME) == null ? internal.timestamp() : StreamRecord.NO_TIME;
  }

  void send(String topic, byte[] key, byte[] value, long time, Header[] headers) {
    Header[] sent = headers;
    if (time == StreamRecord.NO_TIME && topology.isInternal(topic)) {
      sent = Arrays.copyOf(headers, headers.length + 1);
      sent[headers.length] = new RecordHeader(NO_TIME, new byte[0]);
    }
    output.send(topic, key, value, time, sent);
  }

  void count(String node, String event) {
    count(node, event, 1);
  }

  private void count(String node, String event, long number) {
    counts.computeIfAbsent(new Event(node, event), any -> new LongAdder()).add(number);
  }

  /** Goes on with the numbers of events of an earlier task. */
  void goOnCounting(Map<String, Long> before) {
    before.forEach((event, number) -> {
      String[] parts = event.split("\t");
      count(parts[0], parts[1], number);
    });
  }

  /** Numbers of events so far, each under the name of its node, a tab and the event; from any thread. */
  Map<String, Long> counts() {
    Map<String, Long> found = new HashMap<>();
    counts.forEach((event, number) -> found.put(event.node() + "\t" + event.name(), number.sum()));
    return found;
  }

  /** Treats a record for which an expression of a node failed by the topology's policy. */
  void reject(String node, StreamRecord record, EvaluationException failure) {
    if (failure instanceof UnpublishableException unpublishable) {
      // The result itself: what it was made of is still in the topics that the program reads.
      var result = unpublishable.result;
      reject(node, "publish", record, Map.of(), result.key(), result.value(), failure);
      return;
    }
    reject(node, record, Map.of(), failure);
  }

  /** Treats a record, or a result of many records, for which an expression of a node failed in one window alone. */
  void reject(String node, StreamRecord record, Window window, EvaluationException failure) {
    reject(node, record, window.headers(), failure);
  }

  /**
   * Counts a record that came too late for a node.
   *
   * @param number how many records it stands for
   * @param window the window that would have taken records longest
   * @param lateness milliseconds of stream time since then
   * @param isRejected whether the topology's policy for failures treats the record
   */
  void late(String node, StreamRecord record, long number, Window window, long lateness, boolean isRejected) {
    count(node, "late_records", number);
    if (isRejected) {
      Map<String, String> about = new HashMap<>(window.headers());
      about.put("jmsbridge.lateness", Long.toString(lateness));
      reject(node, record, about, EvaluationException.late(lateness));
    }
  }

  private void reject(String node, StreamRecord record, Map<String, String> about, EvaluationException failure) {
    boolean isOfTopic = current != null && record.topic() != null;
    reject(node, failure.reason(), record, about, keyOf(record), isOfTopic ? current.value() : null, failure);
  }

  /**
   * Treats a record that a node cannot process by the topology's policy.
   *
   * @param reason the part that cannot be read, {@code key} or {@code value}, or that of the failure
   * @param value the value that a dead letter gets
   */
  void reject(String node, String reason, StreamRecord record, byte[] value, EvaluationException failure) {
    reject(node, reason, record, Map.of(), keyOf(record), value, failure);
  }

  /** The key in the topic that the record comes from; that of a result of many records is its own. */
  private byte[] keyOf(StreamRecord record) {
    return current == null || record.topic() == null ? record.key() : current.key();
  }

  private void reject(
      String node, String reason, StreamRecord record, Map<String, String> about, byte[] key, byte[] value,
      EvaluationException failure) {
    boolean isOfTopic = record.topic() != null;
    String where = isOfTopic ? position(record.topic(), record.partition(), record.offset()) : null;
    count(node, "rejected_records");
    if (topology.policy() == FailurePolicy.STOP) {
      String what = isOfTopic ? "the record " + where : "a result of many records";
      throw new IllegalStateException(
          "node '%s' cannot process %s: %s".formatted(node, what, text(failure)), failure.getCause());
    }
    if (topology.policy() == FailurePolicy.DEAD_LETTER) {
      sendLetter(node, reason, where, about, text(failure), key, value, record.time(), record.headers());
    }
  }

  /** Sends the record of a topic that was read now to the dead letters unprocessed, whatever the policy. */
  void setAside(String node) {
    ConsumerRecord<byte[], byte[]> record = current;
    count(node, "rejected_records");
    sendLetter(node, "skipped", position(record.topic(), record.partition(), record.offset()), Map.of(),
        "set aside by `jms-bridge topology skip`", record.key(), record.value(), record.timestamp(),
        record.headers().toArray());
  }

  /** Publishes a dead letter; of one that its topic does not take, the beginning and the headers about it. */
  private void sendLetter(
      String node, String reason, String where, Map<String, String> more, String error, byte[] key, byte[] value, long time,
      Header[] own) {
    Map<String, String> about = new LinkedHashMap<>();
    about.put("jmsbridge.reason", reason);
    about.put("jmsbridge.topology", topology.name());
    about.put("jmsbridge.node", node);
    if (where != null) {
      about.put("jmsbridge.position", where);
    }
    if (time >= 0) {
      about.put("jmsbridge.timestamp", Long.toString(time));
    }
    about.putAll(more);
    about.put("jmsbridge.error", error);
    List<Header> headers = new ArrayList<>(List.of(own));
    about.forEach((name, text) -> headers.add(header(name, text)));
    try {
      output.send(topology.deadLetters(), key, value, time, headers.toArray(StreamRecord.NO_HEADERS));
    } catch (UnpublishableException tooLarge) {
      List<Header> kept = new ArrayList<>(headers.subList(own.length, headers.size()));
      int bytes = (key == null ? 0 : key.length) + (value == null ? 0 : value.length);
      kept.add(header("jmsbridge.truncated", String.valueOf(bytes)));
      output.send(topology.deadLetters(), beginning(key), beginning(value), time, kept.toArray(StreamRecord.NO_HEADERS));
    }
  }

  private static byte[] beginning(byte[] part) {
    return part == null || part.length <= KEPT_BYTES ? part : Arrays.copyOf(part, KEPT_BYTES);
  }

  private static Header header(String name, String text) {
    return new RecordHeader(name, text.getBytes(StandardCharsets.UTF_8));
  }

  /** A record's place in Kafka, as users read and write it. */
  static String position(String topic, int partition, long offset) {
    return topic + ":" + partition + ":" + offset;
  }

  private static String text(EvaluationException failure) {
    String text = failure.getMessage();
    return text.length() > MOST_TEXT ? text.substring(0, MOST_TEXT) + "..." : text;
  }
}
