package jmsbridge.kafka;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import jmsbridge.figures.MessageTexts;
import jmsbridge.figures.RowCounters;
import jmsbridge.figures.RowPlace;
import jmsbridge.figures.Sends;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.ForeachWriter;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Writer of one task: counts each row, and publishes those with a topic.
 *
 * <p>Columns by position: topic (null: not published), key, kept (int, a sum of {@code KEEPS_*}), value, headers,
 * trail, outcome, publication (may be null), journal partition, offset and time in microseconds, copy (int, 0 for the
 * first row of a message); in rows of other records than the task's own also message (id of a message to be noted, may
 * be null). What a row keeps is taken from the record that the task has just read, uncopied; the columns value and
 * headers count otherwise. The headers of a published record are: the record's or the column's; if kept, origin,
 * position and seal; those of the trail. Where the column has origin and position already, the seal follows the
 * position. The position of a copy other than the first ends with a colon and its number.
 *
 * <p>A failed send ends the task at its next row or at its end, with Kafka's exception. A record that Kafka refuses for
 * its own sake is noted with its journal position ({@link Sends#refused}).
 */
final class RecordWriter extends ForeachWriter<InternalRow> {
  private static final long serialVersionUID = 1L;

  private static final int KEEPS_VALUE = 1;
  private static final int KEEPS_HEADERS = 2;
  /** The headers of origin and position are to be added. */
  private static final int KEEPS_ORIGIN = 4;

  private static final int TOPIC = 0;
  private static final int KEY = 1;
  private static final int KEPT = 2;
  private static final int VALUE = 3;
  private static final int HEADERS = 4;
  private static final int TRAIL = 5;
  private static final int OUTCOME = 6;
  private static final int PUBLICATION = 7;
  private static final int PARTITION = 8;
  private static final int OFFSET = 9;
  private static final int TIME = 10;
  private static final int COPY = 11;
  private static final int MESSAGE = 12;

  private static final Header[] NO_HEADERS = {};
  private static final UTF8String DESTINATION_NAME = UTF8String.fromString("jms.JMSDestination");
  private static final String ORIGIN_HEADER = "jmsbridge.origin";
  private static final String POSITION_HEADER = "jmsbridge.position";

  private final RowCounters.Query query = RowCounters.query();
  private final Map<String, String> settings;
  private final String origin;
  /** Name of the header with a message's id; null if rows are of other records than those that the task reads. */
  private final String messageHeader;
  /** Seal of published records; null for none. */
  private final Seal seal;
  private transient Seal.Press press;
  private transient UTF8String messageName;
  private transient Header originHeader;
  private transient KafkaProducer<byte[], byte[]> producer;
  private transient AtomicReference<Exception> failure;
  private transient Map<UTF8String, Target> targets;
  private transient Target target;
  private transient byte[] place;

  /** A topic that was written to: its name as Spark and as Kafka have it, and its records' mark in seals. */
  private record Target(UTF8String bytes, String name, long mark) {}

  RecordWriter(Map<String, String> settings, String origin, String messageHeader, Seal seal) {
    this.settings = settings;
    this.origin = origin;
    this.messageHeader = messageHeader;
    this.seal = seal;
  }

  @Override
  public boolean open(long partition, long epoch) {
    refuseRepetition();
    if (RowCounters.join(query)) {
      Producers.close();
    }
    messageName = messageHeader == null ? null : UTF8String.fromString(messageHeader);
    originHeader = origin == null ? null : new RecordHeader(ORIGIN_HEADER, bytes(origin));
    failure = new AtomicReference<>();
    press = seal == null ? null : seal.new Press();
    targets = new HashMap<>();
    return true;
  }

  @Override
  public void process(InternalRow row) {
    rethrow();
    int partition = row.getInt(PARTITION);
    long offset = row.getLong(OFFSET);
    int publication = row.isNullAt(PUBLICATION) ? -1 : row.getInt(PUBLICATION);
    int copy = row.getInt(COPY);
    RecordRow read = messageName == null ? null : CurrentRecord.at(partition, offset);
    RowPlace place = new RowPlace(partition, offset, copy);
    RowCounters.count(row.getInt(OUTCOME), publication, place, row.getLong(TIME), new Texts(row, read));
    if (row.isNullAt(TOPIC)) {
      return;
    }
    int kept = row.getInt(KEPT);
    byte[] key = row.isNullAt(KEY) ? null : row.getBinary(KEY);
    byte[] value = (kept & KEEPS_VALUE) != 0 ? read.value() : row.isNullAt(VALUE) ? null : row.getBinary(VALUE);
    if (producer == null) {
      producer = Producers.get(settings);
    }
    String name = topic(row, read);
    ProducerRecord<byte[], byte[]> record =
        new ProducerRecord<>(name, null, null, key, value, headers(row, kept, read, copy));
    try {
      producer.send(record, new Ending(failure, name, place));
    } catch (KafkaException thrown) {
      // Interrupted while it waited for the topic, for example.
      RowCounters.failed(place);
      throw thrown;
    }
  }

  /** Takes note of a send that has failed, in the producer's thread. */
  private record Ending(AtomicReference<Exception> failure, String topic, RowPlace place)
      implements Callback {
    @Override
    public void onCompletion(RecordMetadata metadata, Exception thrown) {
      if (thrown != null) {
        RowCounters.failed(place);
        if (RefusedRecordException.is(thrown)) {
          Sends.refused(topic, place, thrown);
        }
        failure.compareAndSet(null, thrown);
      }
    }
  }

  /** Waits until Kafka has all records, unless the task has failed. */
  @Override
  public void close(Throwable cause) {
    if (cause == null && producer != null) {
      rethrow();
      producer.flush();
      rethrow();
    }
  }

  /**
   * Ends the task if Spark runs it again, which it does when it has lost an executor: the first run may have published
   * records already, and only recovery finds out which.
   */
  private static void refuseRepetition() {
    TaskContext task = TaskContext.get();
    if (task != null && (task.attemptNumber() > 0 || task.stageAttemptNumber() > 0)) {
      throw new IllegalStateException("an executor of Spark was lost, and with it a task that publishes");
    }
  }

  /** Texts of the message of a row: from the record that was read or, without one, from the row, which has one of them. */
  private final class Texts implements MessageTexts {
    private final InternalRow row;
    private final RecordRow read;

    Texts(InternalRow row, RecordRow read) {
      this.row = row;
      this.read = read;
    }

    @Override
    public String id() {
      return text(messageName);
    }

    @Override
    public String destination() {
      return text(DESTINATION_NAME);
    }

    private String text(UTF8String name) {
      if (read != null) {
        return read.header(name);
      }
      return row.isNullAt(MESSAGE) ? null : row.getUTF8String(MESSAGE).toString();
    }
  }

  private Iterable<Header> headers(InternalRow row, int kept, RecordRow read, int copy) {
    List<Header> headers = new ArrayList<>();
    if ((kept & KEEPS_HEADERS) != 0) {
      Collections.addAll(headers, read.headers());
    } else if (!row.isNullAt(HEADERS)) {
      add(headers, row.getArray(HEADERS));
    }
    if ((kept & KEEPS_ORIGIN) == 0) {
      sealLast(headers);
    } else {
      byte[] position = position(read, copy);
      headers.add(originHeader);
      headers.add(new RecordHeader(POSITION_HEADER, position));
      if (press != null) {
        headers.add(copy == 0 ? press.header(read.record().offset()) : sealed(position));
      }
    }
    if (!row.isNullAt(TRAIL)) {
      add(headers, row.getArray(TRAIL));
    }
    // A record copies headers of this class as one block.
    return new RecordHeaders(headers.toArray(NO_HEADERS));
  }

  /** Adds a seal behind the last position, which is the router's: it comes behind all headers of the message. */
  private void sealLast(List<Header> headers) {
    for (int index = headers.size() - 1; press != null && index >= 0; index--) {
      Header header = headers.get(index);
      if (header.key().equals(POSITION_HEADER)) {
        headers.add(index + 1, sealed(header.value()));
        return;
      }
    }
  }

  private Header sealed(byte[] position) {
    return new RecordHeader(Seal.HEADER, seal.value(position, bytes(target.name())));
  }

  /** The position of a record, with the number of the copy unless it is the first. */
  private byte[] position(RecordRow read, int copy) {
    byte[] before = place(read);
    int digits = 1;
    for (long left = read.record().offset(); left > 9; left /= 10) {
      digits++;
    }
    byte[] position = Arrays.copyOf(before, before.length + digits);
    long left = read.record().offset();
    for (int index = position.length - 1; index >= before.length; index--) {
      position[index] = (byte) ('0' + left % 10);
      left /= 10;
    }
    return copy == 0 ? position : bytes(new String(position, StandardCharsets.UTF_8) + ":" + copy);
  }

  /** What positions begin with, topic and partition: the same for all records of a task. */
  private byte[] place(RecordRow read) {
    if (place == null) {
      place = bytes(read.record().topic() + ":" + read.record().partition() + ":");
    }
    return place;
  }

  private static void add(List<Header> headers, ArrayData from) {
    for (int index = 0; index < from.numElements(); index++) {
      InternalRow header = from.getStruct(index, 2);
      headers.add(new RecordHeader(header.getUTF8String(0).toString(), header.isNullAt(1) ? null : header.getBinary(1)));
    }
  }

  /** The topic's name; none is decoded again. */
  private String topic(InternalRow row, RecordRow read) {
    UTF8String bytes = row.getUTF8String(TOPIC);
    if (target == null || !bytes.equals(target.bytes())) {
      target = targets.get(bytes);
      if (target == null) {
        long mark = press == null || read == null ? 0 : seal.mark(bytes.getBytes(), place(read));
        target = new Target(bytes.clone(), bytes.toString(), mark);
        targets.put(target.bytes(), target);
      }
      if (press != null) {
        press.turn(target.mark());
      }
    }
    return target.name();
  }

  private void rethrow() {
    Exception thrown = failure.get();
    if (thrown instanceof RuntimeException known) {
      throw known;
    }
    if (thrown != null) {
      throw new IllegalStateException(thrown);
    }
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }
}
