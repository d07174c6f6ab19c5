package jmsbridge.streams;

import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;

/**
 * Table that keeps the former values of each key for a time, so that a value can be looked up as of a time.
 *
 * <p>The latest row of a key is where {@link ToTable} keeps it. Versions, under the negated times from which they were
 * valid, are the rows before it, and removals. A change that is older than the latest one becomes a version alone, and is
 * not forwarded.
 */
final class VersionedTable extends StatefulNode implements TableState {
  private static final long serialVersionUID = 1L;
  private static final char VERSION = 'v';
  private static final byte[] REMOVAL = {};

  private final RowCheck rows;
  private final long history;

  /** Creates the table; {@code history} is how many milliseconds before stream time can be looked up. */
  VersionedTable(String name, StructType type, long history) {
    super(name, type);
    rows = new RowCheck(type);
    this.history = history;
  }

  @Override
  void process(StreamRecord record, int port) {
    if (record.key() == null) {
      task.count(name, "null_keys");
      return;
    }
    long time = observe(record);
    if (record.time() < time - history) {
      task.count(name, "late_records");
    } else {
      change(record);
    }
    expire();
  }

  private void change(StreamRecord record) {
    byte[] stateKey = keys(STATE).bytes(record.key()).done();
    byte[] kept = task.store().get(stateKey);
    List<Store.Entry> newest = task.store().range(versions(record.key()), Keys.behind(versions(record.key())), 1);
    long latest = Long.MIN_VALUE;
    if (kept != null) {
      latest = Rows.time(kept);
    } else if (!newest.isEmpty()) {
      latest = from(newest.get(0).key());
    }
    InternalRow now = record.value();
    if (record.time() < latest) {
      // As long as the one behind it, which may be a removal: none shows up again when that is gone.
      byte[] behind = version(record.key(), record.time());
      List<Store.Entry> later = task.store().range(versions(record.key()), behind);
      long end = later.isEmpty() ? latest : from(later.get(later.size() - 1).key());
      putVersion(record.key(), record.time(), now == null ? REMOVAL : Rows.bytes(now), end);
      return;
    }
    if (kept != null && latest < record.time()) {
      putVersion(record.key(), latest, Rows.bytes(Rows.timedRow(kept, rows)), record.time());
    }
    if (now == null) {
      task.store().remove(stateKey);
      putVersion(record.key(), record.time(), REMOVAL, record.time());
    } else {
      removeVersion(version(record.key(), record.time()), record.time());
      task.store().put(stateKey, Rows.timed(record.time(), now));
    }
    if (now != null || kept != null) {
      forward(record.withChange(now, kept == null ? null : Rows.timedRow(kept, rows)));
    }
  }

  /** Keeps a version until its end is so long ago that nobody can ask for it. */
  private void putVersion(byte[] key, long from, byte[] row, long end) {
    byte[] version = version(key, from);
    removeVersion(version, from);
    task.store().put(version, row);
    expireAfter(end + history, version);
  }

  /** Removes a version, if it is there, so that another one can take its place. */
  private void removeVersion(byte[] version, long from) {
    byte[] kept = task.store().get(version);
    if (kept != null) {
      task.store().remove(version);
      forgetExpiry(from + history, version);
    }
  }

  @Override
  void expire() {
    expired().forEach(task.store()::remove);
  }

  @Override
  StreamRecord shown(Store.Entry entry) {
    InternalRow row = Rows.timedRow(entry.value(), rows);
    return StreamRecord.of(new Keys.Reader(entry.key()).bytes(), row, Rows.time(entry.value()));
  }

  @Override
  public InternalRow lookUp(byte[] key) {
    return lookUp(key, StreamRecord.NO_TIME);
  }

  @Override
  public InternalRow lookUp(byte[] key, long time) {
    byte[] latest = task.store().get(keys(STATE).bytes(key).done());
    if (latest != null && (time == StreamRecord.NO_TIME || Rows.time(latest) <= time)) {
      return Rows.timedRow(latest, rows);
    }
    if (time == StreamRecord.NO_TIME || time < time() - history) {
      return null;
    }
    List<Store.Entry> versions = task.store().range(version(key, time), Keys.behind(versions(key)), 1);
    return versions.isEmpty() || versions.get(0).value().length == 0 ? null : rows.kept(versions.get(0).value(), 0);
  }

  @Override
  public long timeOf(byte[] key) {
    byte[] kept = task.store().get(keys(STATE).bytes(key).done());
    return kept == null ? Long.MIN_VALUE : Rows.time(kept);
  }

  private byte[] versions(byte[] key) {
    return keys(VERSION).bytes(key).done();
  }

  private byte[] version(byte[] key, long from) {
    return keys(VERSION).bytes(key).number(~from).done();
  }

  private static long from(byte[] version) {
    Keys.Reader reader = new Keys.Reader(version);
    reader.bytes();
    return ~reader.number();
  }
}
