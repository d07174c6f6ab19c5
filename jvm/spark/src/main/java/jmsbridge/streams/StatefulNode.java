package jmsbridge.streams;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.zip.CRC32;
import org.apache.spark.sql.types.StructType;

/** Node with entries of its own in the store of its task. */
abstract class StatefulNode extends Node {
  private static final long serialVersionUID = 1L;

  /** Kinds of entries. */
  static final char STATE = 's';
  static final char OTHER_SIDE = 'o';
  static final char EXPIRY = 'x';
  private static final char PROGRESS = 'p';

  private int number;
  private long time = Long.MIN_VALUE;
  private long sequence;
  private boolean isSaved = true;
  /** No entry expires before this time. */
  private long nextExpiry = Long.MIN_VALUE;
  /** The clock moves the node on as well, see {@link #tick}. */
  private boolean followsClock;
  /** Entries that expire before this time are gone: a search from here passes none of those that the store deleted. */
  private long searched = Long.MIN_VALUE;

  StatefulNode(String name, StructType type) {
    super(name, type);
    number = number(name);
  }

  /** Number under which a node of this name keeps its entries unless it is given another one. */
  static int number(String name) {
    CRC32 checksum = new CRC32();
    checksum.update(name.getBytes(StandardCharsets.UTF_8));
    return (int) checksum.getValue();
  }

  /** Sets the number under which the node keeps its entries. */
  final void keepUnder(int other) {
    number = other;
  }

  /** Has the clock move the node on as well; before the program is copied to tasks. */
  final void followClock() {
    followsClock = true;
  }

  final boolean followsClock() {
    return followsClock;
  }

  @Override
  void open(TaskContext owner) {
    super.open(owner);
    byte[] kept = owner.store().get(keys(PROGRESS).done());
    if (kept != null) {
      Keys.Reader reader = new Keys.Reader(kept);
      time = reader.number();
      searched = time;
      sequence = reader.number();
    }
  }

  /** Stream time for who reads the state, maybe of a node that runs elsewhere: when it was last saved, or later. */
  final long shownTime() {
    byte[] kept = task.store().get(keys(PROGRESS).done());
    return kept == null ? time : Math.max(time, new Keys.Reader(kept).number());
  }

  @Override
  void save() {
    if (!isSaved) {
      task.store().put(keys(PROGRESS).done(), keys(PROGRESS).number(time).number(sequence).done());
      isSaved = true;
    }
  }

  final Keys keys(char kind) {
    return Keys.of(number, kind);
  }

  /** Fields of what {@link #shown} gives. */
  StructType shownType() {
    return type;
  }

  /** Entries of the kind {@link #STATE} from a key (included) to a key (excluded), the first {@code limit} of them. */
  List<Store.Entry> states(byte[] from, byte[] to, int limit) {
    return task.store().range(from, to, limit);
  }

  /** What an entry of the kind {@link #STATE} says, as the record that it would forward; null: nothing. */
  StreamRecord shown(Store.Entry entry) {
    throw new IllegalArgumentException("node '%s' keeps records, not results, and cannot be asked".formatted(name));
  }

  /** Stream time of the node, the latest time of a record that it got, now that one of this time came. */
  final long observe(long recordTime) {
    if (recordTime > time) {
      time = recordTime;
      isSaved = false;
    }
    return time;
  }

  /** Stream time now that a record came; EvaluationException for one without a time, of which no node can say it is late. */
  final long observe(StreamRecord record) {
    return observe(timeWith(record));
  }

  /** Stream time as it will be with a record, which may still fail; EvaluationException as {@link #observe}. */
  final long timeWith(StreamRecord record) {
    if (record.time() == StreamRecord.NO_TIME) {
      throw EvaluationException.noTime();
    }
    return Math.max(time, record.time());
  }

  /** Removes what has expired, and forwards what follows from it. */
  void expire() {}

  /** Moves stream time on to a time, as a record of it would. */
  final void advance(long to) {
    observe(to);
    expire();
  }

  /** The time of the clock at which the node has something to do; the greatest: none. It may have nothing to do then. */
  long due() {
    if (nextExpiry == Long.MIN_VALUE) {
      nextExpiry = firstExpiry();
    }
    return nextExpiry == Long.MAX_VALUE ? nextExpiry : nextExpiry + 1;
  }

  /** Does what is due at a time of the clock: moves stream time on to it if an entry expires then, and no further. */
  void tick(long clock) {
    if (due() <= clock) {
      nextExpiry = firstExpiry();
      if (due() <= clock) {
        advance(clock);
      }
    }
  }

  final long time() {
    return time;
  }

  /** A number that the node gives once only. */
  final long nextNumber() {
    isSaved = false;
    return sequence++;
  }

  /** Notes that an entry expires when stream time is later than a time. */
  final void expireAfter(long end, byte[] entry) {
    task.store().put(keys(EXPIRY).number(end).bytes(entry).done(), new byte[0]);
    nextExpiry = Math.min(nextExpiry, end);
  }

  /** Whether it is noted that an entry expires when stream time is later than a time. */
  final boolean expiresAfter(long end, byte[] entry) {
    return task.store().get(keys(EXPIRY).number(end).bytes(entry).done()) != null;
  }

  final void forgetExpiry(long end, byte[] entry) {
    task.store().remove(keys(EXPIRY).number(end).bytes(entry).done());
  }

  /**
   * Removes rows, each behind its time, that were not updated for a time, and gives them in the order of their times. An
   * update need not be noted, if only the first time of a row was by {@link #expireAfter}, and each one that is earlier.
   */
  final List<Store.Entry> outdated(long ttl) {
    List<Store.Entry> rows = new ArrayList<>();
    for (byte[] at : expired()) {
      byte[] kept = task.store().get(at);
      if (kept != null && isOutdated(kept, ttl, time)) {
        task.store().remove(at);
        rows.add(new Store.Entry(at, kept));
      } else if (kept != null) {
        expireAfter(Rows.time(kept) + ttl, at);
      }
    }
    rows.sort(Comparator.<Store.Entry>comparingLong(each -> Rows.time(each.value()))
        .thenComparing(Store.Entry::key, Arrays::compareUnsigned));
    return rows;
  }

  static boolean isOutdated(byte[] row, long ttl, long streamTime) {
    return Rows.time(row) + ttl < streamTime;
  }

  /** Entries that have expired, in the order of their times; they are no longer noted as such. */
  final List<byte[]> expired() {
    if (time <= nextExpiry) {
      return List.of();
    }
    Store store = task.store();
    List<byte[]> entries = new ArrayList<>();
    for (Store.Entry each : store.range(keys(EXPIRY).number(searched).done(), keys(EXPIRY).number(time).done())) {
      store.remove(each.key());
      Keys.Reader reader = new Keys.Reader(each.key());
      reader.number();
      entries.add(reader.bytes());
    }
    searched = time;
    nextExpiry = firstExpiry();
    return entries;
  }

  private long firstExpiry() {
    byte[] behind = keys((char) (EXPIRY + 1)).done();
    List<Store.Entry> first = task.store().range(keys(EXPIRY).number(searched).done(), behind, 1);
    return first.isEmpty() ? Long.MAX_VALUE : new Keys.Reader(first.get(0).key()).number();
  }
}
