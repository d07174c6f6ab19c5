package jmsbridge.figures;

import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Counts of routed rows, made inside the JVM, so that figures are at most seconds old in both modes.
 *
 * <p>Spark itself reports progress only once per interval. The sink calls {@link #count} for each row after routing.
 * Python calls {@link #begin}. All state is static: it belongs to a JVM, and survives the restart of a query in it. In a
 * session with executors, each of them counts the rows of its tasks, and reports them to the driver. Rows of one journal
 * partition come in the order of their offsets and from one thread at a time; therefore a row that is routed again after
 * a failure can be recognised, and is not counted again.
 */
public final class RowCounters {
  /** Kind of outcomes that publish a record. */
  public static final int EMITS = 1;

  /** Kind of outcomes that count in the latency histogram. */
  public static final int TIMED = 2;

  /** Kind of outcomes that get a note each, for the log. */
  public static final int NOTED = 4;

  /** Kind of outcomes that are counted by destination. */
  public static final int BY_DESTINATION = 8;

  private static final int NOTES = 256;
  private static final int MOST_FAILED = 100_000;
  private static final int LONGEST_ID = 200;

  private static volatile Query query = new Query(0, new byte[0], 0, List.of(), new long[0]);
  private static volatile Counts counts = new Counts(query);
  private static volatile Mark[] marks = new Mark[0];

  /**
   * A query whose rows are counted, for its tasks in other processes.
   *
   * @param number increases with each query of a session
   * @param kinds kinds of its outcomes by index
   * @param publications number of its publications
   * @param boundsMs upper bounds of the buckets of its latencies
   * @param counted highest offset counted before it, by journal partition, -1 for none
   */
  public record Query(long number, byte[] kinds, int publications, List<Integer> boundsMs, long[] counted)
      implements Serializable {}

  /**
   * What an executor reports of its rows.
   *
   * @param query number of the query that {@code figures} are of
   * @param figures as JSON
   * @param notes about failed messages since the report before
   * @param counted highest counted offset by journal partition, -1 for none
   */
  public record Report(long query, String figures, List<Note> notes, long[] counted) implements Serializable {}

  /** Counts of one query, by outcome and publication; the numbers of publications may differ in the next query. */
  private static final class Counts {
    final byte[] kinds;
    final int width;
    final LongAdder[] cells;
    final LongAdder emitted = new LongAdder();
    final LatencyHistogram latencies;
    final ArrayBlockingQueue<Note> notes = new ArrayBlockingQueue<>(NOTES);
    final LongAdder unnoted = new LongAdder();
    final DestinationCounts destinations = new DestinationCounts();

    Counts(Query query) {
      kinds = query.kinds;
      width = query.publications + 1;
      cells = Stream.generate(LongAdder::new).limit((long) kinds.length * width).toArray(LongAdder[]::new);
      latencies = new LatencyHistogram(query.boundsMs);
    }

    void add(int outcome, int publication, int partition, long offset, long time, MessageTexts message) {
      int kind = kinds[outcome];
      cells[outcome * width + publication + 1].increment();
      if ((kind & TIMED) != 0) {
        latencies.add(partition, offset, time / 1000);
      }
      if ((kind & NOTED) != 0) {
        add(new Note(outcome, publication, partition, offset, time / 1000, message.id()));
      }
      if ((kind & BY_DESTINATION) != 0) {
        destinations.add(message.destination());
      }
    }

    void add(Note note) {
      if (!notes.offer(note)) {
        unnoted.increment();
      }
    }
  }

  /** Note about a failed message; the publication is -1 if there is none. */
  public record Note(int outcome, int publication, int partition, long offset, long time, String message)
      implements Serializable {
    @Override
    public String toString() {
      String known = message == null ? "" : message.substring(0, Math.min(message.length(), LONGEST_ID));
      byte[] id = known.getBytes(StandardCharsets.UTF_8);
      String place = outcome + "," + publication + "," + partition + "," + offset + "," + time;
      return "[" + place + ",\"" + Base64.getEncoder().encodeToString(id) + "\"]";
    }
  }

  /** Progress of one journal partition. One thread writes it; the reading thread may be a moment behind. */
  private static final class Mark {
    final AtomicLong counted = new AtomicLong(-1);
    /** The last counted copy of the message at the counted offset; only the writing thread uses it. */
    int copy;
    final AtomicLong processed = new AtomicLong(-1);
    final AtomicLong time = new AtomicLong(-1);
    /** Places of counted rows that Kafka has not taken, and that are routed again. */
    final Set<RowPlace> failed = ConcurrentHashMap.newKeySet();
  }

  /**
   * Starts the counts of a query, with the kinds of its outcomes by index, the number of its publications, and the upper
   * bounds of the buckets of its latencies in milliseconds. The highest counted offsets stay, so that a journal record
   * that is routed a second time in this JVM is not counted twice.
   */
  public static synchronized void begin(byte[] kinds, int publications, List<Integer> boundsMs) {
    // A list of Python's side lives as long as Python wants.
    start(new Query(query.number + 1, kinds.clone(), publications, new ArrayList<>(boundsMs), counted()));
  }

  /** The query that began last. */
  public static Query query() {
    return query;
  }

  /** Starts the counts of a query in this process, if they have not started yet; returns true if they start now. */
  public static boolean join(Query joined) {
    return joined.number != query.number && startJoined(joined);
  }

  private static synchronized boolean startJoined(Query joined) {
    // Tasks of a query that was stopped may still be ending.
    boolean isNew = joined.number > query.number;
    if (isNew) {
      start(joined);
    }
    return isNew;
  }

  private static void start(Query started) {
    merge(started.counted, List.of());
    for (Mark mark : marks) {
      mark.processed.set(-1);
      mark.time.set(-1);
    }
    counts = new Counts(started);
    Sends.begin();
    Readiness.begin();
    query = started;
  }

  /** Adds what an executor reports: highest counted offsets by journal partition, and notes about failures. */
  public static void merge(Report report) {
    merge(report.counted, report.notes);
  }

  private static synchronized void merge(long[] counted, List<Note> notes) {
    for (int partition = 0; partition < counted.length; partition++) {
      if (counted[partition] >= 0) {
        Mark mark = partition < marks.length ? marks[partition] : grow(partition);
        mark.counted.accumulateAndGet(counted[partition], Math::max);
      }
    }
    Counts now = counts;
    notes.forEach(now::add);
  }

  /** Forgets all figures, and which rows were counted. For tests, whose journals share one JVM. */
  public static synchronized void reset() {
    marks = new Mark[0];
    begin(new byte[0], 0, List.of());
  }

  private RowCounters() {}

  /**
   * Counts a row that is about to be published, or that is not published.
   *
   * @param outcome index of its outcome
   * @param publication index of its publication, -1 for none
   * @param time journal time in microseconds
   * @param message texts of the message
   */
  public static void count(int outcome, int publication, RowPlace place, long time, MessageTexts message) {
    Counts now = counts;
    int partition = place.partition();
    long offset = place.offset();
    if ((now.kinds[outcome] & EMITS) != 0) {
      now.emitted.increment();
    }
    Mark mark = partition < marks.length ? marks[partition] : grow(partition);
    long counted = mark.counted.getPlain();
    if (offset > counted || offset == counted && place.copy() > mark.copy) {
      now.add(outcome, publication, partition, offset, time, message);
      mark.copy = place.copy();
      mark.counted.setRelease(offset);
    } else if (!mark.failed.isEmpty() && mark.failed.remove(place) && (now.kinds[outcome] & TIMED) == 0) {
      // Routed, not taken by Kafka, and now a failure of its own.
      now.add(outcome, publication, partition, offset, time, message);
    }
    mark.time.setRelease(time / 1000);
    mark.processed.setRelease(offset);
  }

  /** Notes that Kafka has not taken the record of a counted row: if it fails when it is routed again, that counts. */
  public static void failed(RowPlace place) {
    Mark[] known = marks;
    if (place.partition() < known.length && known[place.partition()].failed.size() < MOST_FAILED) {
      known[place.partition()].failed.add(place);
    }
  }

  /** The figures of this process since {@link #begin} as a JSON object; each note comes once. */
  public static String read() {
    return figures(takenNotes());
  }

  /** The report of this process, which is an executor; each note comes once. */
  public static synchronized Report report() {
    return new Report(query.number, figures(List.of()), takenNotes(), counted());
  }

  private static List<Note> takenNotes() {
    List<Note> notes = new ArrayList<>();
    counts.notes.drainTo(notes);
    return notes;
  }

  private static long[] counted() {
    return Arrays.stream(marks).mapToLong(mark -> mark.counted.get()).toArray();
  }

  /**
   * The figures of this process since {@link #begin} as JSON. `counts` has the cells that are not 0, each with its count;
   * cells are by outcome, then for no publication and for each one, which are `width`. `marks` has each journal
   * partition of which a row was counted, with the last offset and its epoch milliseconds.
   */
  private static String figures(List<Note> notes) {
    // Against the flow, `acknowledged` is read before `emitted`: a record under way is never missed, though one that
    // has arrived meanwhile may count as under way until the next reading.
    String sends = Sends.read();
    Counts now = counts;
    Mark[] known = marks;
    String cells = IntStream.range(0, now.cells.length)
        .filter(cell -> now.cells[cell].sum() != 0)
        .mapToObj(cell -> cell + "," + now.cells[cell])
        .collect(Collectors.joining(",", "[", "]"));
    String places = IntStream.range(0, known.length)
        .filter(partition -> known[partition].processed.get() >= 0)
        .mapToObj(partition -> partition + "," + known[partition].processed + "," + known[partition].time)
        .collect(Collectors.joining(",", "[", "]"));
    return "{\"outcomes\":" + now.kinds.length
        + ",\"width\":" + now.width
        + ",\"counts\":" + cells
        + ",\"emitted\":" + now.emitted
        + "," + now.latencies.read()
        + ",\"marks\":" + places
        + ",\"notes\":" + notes.stream().map(Note::toString).collect(Collectors.joining(",", "[", "]"))
        + ",\"unnoted\":" + now.unnoted
        + "," + now.destinations.read()
        + "," + Readiness.read() + "," + sends + "}";
  }

  private static synchronized Mark grow(int partition) {
    Mark[] old = marks;
    if (partition >= old.length) {
      Mark[] longer = Arrays.copyOf(old, partition + 1);
      for (int index = old.length; index <= partition; index++) {
        longer[index] = new Mark();
      }
      marks = longer;
    }
    return marks[partition];
  }
}
