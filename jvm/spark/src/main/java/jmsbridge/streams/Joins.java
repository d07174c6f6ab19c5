package jmsbridge.streams;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Nodes that join the records of two inputs with equal keys; a result has the fields of the left, then of the right. */
final class Joins {
  static final int LEFT = 0;
  static final int RIGHT = 1;

  private Joins() {}

  /** Fields of a result; those of the right have a prefix. */
  static StructType joined(StructType left, StructType right, String prefix) {
    StructType type = left;
    for (StructField each : right.fields()) {
      String name = prefix + each.name();
      if (List.of(type.fieldNames()).contains(name)) {
        throw new IllegalArgumentException(
            "both sides have a field '%s': give the join a prefix for the fields of the right side".formatted(name));
      }
      type = type.add(name, each.dataType(), true);
    }
    return type;
  }

  /** Maker of joined rows; a missing side has no fields. */
  static final class Joiner {
    private final UnsafeProjection copier;
    private final JoinedRow both = new JoinedRow();
    private final InternalRow noLeft;
    private final InternalRow noRight;

    Joiner(StructType type, int leftFields) {
      copier = Rows.copier(type);
      noLeft = new GenericInternalRow(leftFields);
      noRight = new GenericInternalRow(type.size() - leftFields);
    }

    InternalRow join(InternalRow left, InternalRow right) {
      return copier.apply(both.apply(left == null ? noLeft : left, right == null ? noRight : right)).copy();
    }
  }

  /** Joins each record of a stream with the value of a table: the present one, or that of the record's time. */
  static final class StreamTable extends Node {
    private static final long serialVersionUID = 1L;
    private final Node table;
    private final int leftFields;
    private final KeyColumn on;
    private final boolean isLeft;
    private transient Joiner joiner;

    /** {@code on} gives the key in the table; null: the record's own key. */
    StreamTable(String name, StructType type, Node table, int leftFields, boolean isLeft, KeyColumn on) {
      super(name, type);
      this.on = on;
      this.table = table;
      this.leftFields = leftFields;
      this.isLeft = isLeft;
    }

    @Override
    void open(TaskContext owner) {
      super.open(owner);
      joiner = new Joiner(type, leftFields);
    }

    @Override
    void process(StreamRecord record, int port) {
      if (record.value() == null) {
        task.count(name, "null_values");
        return;
      }
      byte[] key = on == null ? record.key() : on.of(record, record.value());
      if (key == null) {
        task.count(name, "null_keys");
      }
      InternalRow right = key == null ? null : ((TableState) table).lookUp(key, record.time());
      if (right != null || isLeft) {
        forward(record.withValue(joiner.join(record.value(), right)));
      }
    }
  }

  /** Table of the joined values of two tables. */
  static final class TableTable extends Node {
    private static final long serialVersionUID = 1L;
    private final Node left;
    private final Node right;
    private final boolean keepsLeft;
    private final boolean keepsRight;
    private transient Joiner joiner;

    TableTable(String name, StructType type, Node left, Node right, boolean keepsLeft, boolean keepsRight) {
      super(name, type);
      this.left = left;
      this.right = right;
      this.keepsLeft = keepsLeft;
      this.keepsRight = keepsRight;
    }

    @Override
    void open(TaskContext owner) {
      super.open(owner);
      joiner = new Joiner(type, left.type.size());
    }

    @Override
    void process(StreamRecord record, int port) {
      TableState others = (TableState) (port == LEFT ? right : left);
      InternalRow other = others.lookUp(record.key());
      InternalRow now = join(port, record.value(), other);
      InternalRow former = join(port, record.before(), other);
      if (now != null || former != null) {
        forward(record.withChange(now, former).withTime(Math.max(record.time(), others.timeOf(record.key()))));
      }
    }

    private InternalRow join(int port, InternalRow own, InternalRow other) {
      InternalRow ofLeft = port == LEFT ? own : other;
      InternalRow ofRight = port == LEFT ? other : own;
      boolean isResult = ofLeft != null && ofRight != null
          || ofLeft != null && keepsLeft || ofRight != null && keepsRight;
      return isResult ? joiner.join(ofLeft, ofRight) : null;
    }
  }

  /**
   * Joins records of two streams whose times are near: a left record at time t with the right ones from t - before to
   * t + after. Records without a partner, where they are kept, are forwarded when none can come any more.
   *
   * <p>Records are kept in buckets of time.
   */
  static final class StreamStream extends StatefulNode {
    private static final long serialVersionUID = 1L;
    private static final long LEAST_BUCKET_MS = 1000;
    private final int leftFields;
    private final RowCheck[] rows;
    private final long[] before;
    private final long[] after;
    private final long grace;
    private final boolean[] keeps;
    private final boolean rejectsLate;
    private final long bucketMs;
    /** The records of each side. */
    private transient TimeBuckets[] sides;
    private transient Joiner joiner;

    StreamStream(
        String name, StructType type, StructType left, StructType right, long before, long after, long grace, boolean keepsLeft,
        boolean keepsRight, boolean rejectsLate) {
      super(name, type);
      leftFields = left.size();
      rows = new RowCheck[] {new RowCheck(left), new RowCheck(right)};
      this.before = new long[] {before, after};
      this.after = new long[] {after, before};
      this.grace = grace;
      keeps = new boolean[] {keepsLeft, keepsRight};
      this.rejectsLate = rejectsLate;
      bucketMs = Math.max(before + after, LEAST_BUCKET_MS);
    }

    @Override
    void open(TaskContext owner) {
      super.open(owner);
      joiner = new Joiner(type, leftFields);
      sides = new TimeBuckets[] {
        new TimeBuckets(owner.store(), () -> keys(STATE), bucketMs),
        new TimeBuckets(owner.store(), () -> keys(OTHER_SIDE), bucketMs)
      };
    }

    @Override
    void process(StreamRecord record, int port) {
      if (record.value() == null) {
        task.count(name, "null_values");
        return;
      }
      if (record.key() == null) {
        // No record can be its partner, so that nothing is to be waited for.
        task.count(name, "null_keys");
        if (keeps[port]) {
          forward(record.withValue(alone(record.value(), port)));
        }
        return;
      }
      long time = observe(record);
      long closes = record.time() + after[port] + grace;
      if (closes < time) {
        var partners = new TaskContext.Window(record.time() - before[port], record.time() + after[port]);
        task.late(name, record, 1, partners, time - closes, rejectsLate);
        expire();
        return;
      }
      int other = 1 - port;
      List<Store.Entry> partners = partners(record, port);
      partners.removeIf(each -> time(each.key()) + after[other] + grace < time);
      for (Store.Entry each : partners) {
        InternalRow partner = Rows.timedRow(each.value(), rows[other]);
        long latest = Math.max(record.time(), time(each.key()));
        InternalRow joined = port == LEFT
            ? joiner.join(record.value(), partner) : joiner.join(partner, record.value());
        if (keeps[other] && each.value()[0] == 0) {
          byte[] met = each.value().clone();
          met[0] = 1;
          task.store().put(each.key(), met);
        }
        forward(record.withValue(joined).withTime(latest));
      }
      long bucket = sides[port].of(record.time());
      byte[] at = sides[port].key(bucket).bytes(record.key()).number(record.time()).number(nextNumber()).done();
      sides[port].put(bucket, at, entry(record, !partners.isEmpty()));
      if (keeps[port] && partners.isEmpty()) {
        expireAfter(closes, at);
      }
      expire();
    }

    /** The records of the other side that are near to a record, in the order of their times. */
    private List<Store.Entry> partners(StreamRecord record, int port) {
      long from = record.time() - before[port];
      long until = record.time() + after[port];
      TimeBuckets others = sides[1 - port];
      List<Store.Entry> found = new ArrayList<>();
      for (long bucket = Math.max(others.of(from), others.oldest()); bucket <= others.of(until); bucket++) {
        byte[] first = others.key(bucket).bytes(record.key()).number(from).done();
        byte[] behind = others.key(bucket).bytes(record.key()).number(until + 1).done();
        found.addAll(task.store().range(first, behind));
      }
      return found;
    }

    @Override
    void expire() {
      for (byte[] at : expired()) {
        byte[] kept = task.store().get(at);
        if (kept == null || kept.length == 0) {
          throw new DamagedStateException("a record that waits for a partner is gone");
        }
        if (kept[0] == 0) {
          int port = Keys.kind(at) == STATE ? LEFT : RIGHT;
          InternalRow own = Rows.timedRow(kept, rows[port]);
          forward(StreamRecord.of(key(at), alone(own, port), time(at)));
        }
      }
      // Records that cannot find a partner any more.
      sides[LEFT].removeBefore(sides[LEFT].of(time() - after[LEFT] - grace));
      sides[RIGHT].removeBefore(sides[RIGHT].of(time() - after[RIGHT] - grace));
    }

    /** The result for a row without a partner. */
    private InternalRow alone(InternalRow own, int port) {
      return port == LEFT ? joiner.join(own, null) : joiner.join(null, own);
    }

    /** Eight bytes, the first of which tells whether the record has found a partner, and its row. */
    private static byte[] entry(StreamRecord record, boolean hasPartner) {
      byte[] entry = Rows.timed(0, record.value());
      entry[0] = (byte) (hasPartner ? 1 : 0);
      return entry;
    }

    private static byte[] key(byte[] at) {
      Keys.Reader reader = new Keys.Reader(at);
      reader.number();
      return reader.bytes();
    }

    private static long time(byte[] at) {
      Keys.Reader reader = new Keys.Reader(at);
      reader.number();
      reader.bytes();
      return reader.number();
    }
  }
}
