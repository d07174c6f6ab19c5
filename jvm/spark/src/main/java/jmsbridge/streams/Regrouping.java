package jmsbridge.streams;

import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;

/** Nodes that aggregate a table by groups other than its key. */
final class Regrouping {
  private Regrouping() {}

  /** Sends each change of a table to the groups of the former and of the present value, under the table's key. */
  static final class ByGroup extends Node {
    private static final long serialVersionUID = 1L;
    private final KeyColumn group;
    private final String topic;

    ByGroup(String name, StructType type, KeyColumn group, String topic) {
      super(name, type);
      this.group = group;
      this.topic = topic;
    }

    @Override
    void process(StreamRecord record, int port) {
      byte[] former = record.before() == null ? null : EvaluationException.orNull(() -> group.of(record, record.before()));
      byte[] now = null;
      EvaluationException failed = null;
      try {
        now = record.value() == null ? null : group.of(record, record.value());
      } catch (EvaluationException failure) {
        failed = failure;
      }
      if (former != null && !Arrays.equals(former, now)) {
        send(record, former, new byte[0]);
      }
      if (failed != null) {
        throw failed;
      }
      if (now != null) {
        send(record, now, Rows.bytes(record.value()));
      } else if (record.value() != null) {
        task.count(name, "null_keys");
      }
    }

    private void send(StreamRecord record, byte[] group, byte[] row) {
      task.send(topic, group, Pair.of(record.key(), row), record.time(), record.headers());
    }
  }

  /**
   * Aggregates the present members of each group: all of them again at each change. A member with which the group cannot
   * be aggregated counts as no member, so that the group goes on without it.
   */
  static final class GroupTotal extends StatefulNode implements TableState {
    private static final long serialVersionUID = 1L;
    private final Aggregator aggregator;
    private final RowCheck members;

    GroupTotal(String name, Aggregator aggregator, StructType member) {
      super(name, aggregator.type());
      this.aggregator = aggregator;
      members = new RowCheck(member);
    }

    @Override
    void process(StreamRecord record, int port) {
      byte[] value = record.value().getBinary(0);
      byte[] member = Pair.first(value);
      byte[] row = Pair.second(value);
      byte[] stateKey = keys(STATE).bytes(record.key()).bytes(member).done();
      InternalRow before = lookUp(record.key());
      long latest = Math.max(record.time(), timeOf(record.key()));
      if (row.length == 0) {
        task.store().remove(stateKey);
      } else {
        task.store().put(stateKey, Rows.timed(record.time(), row));
      }
      InternalRow now;
      EvaluationException failed = null;
      try {
        now = total(record.key());
      } catch (EvaluationException failure) {
        failed = failure;
        task.store().remove(stateKey);
        now = lookUp(record.key());
      }
      if (now != null || before != null) {
        forward(record.withChange(now, before).withTime(latest));
      }
      if (failed != null) {
        throw failed;
      }
    }

    /** The result of the group, shown with its first member alone. */
    @Override
    StreamRecord shown(Store.Entry entry) {
      byte[] group = new Keys.Reader(entry.key()).bytes();
      byte[] members = keys(STATE).bytes(group).done();
      byte[] first = task.store().range(members, Keys.behind(members), 1).get(0).key();
      return Arrays.equals(first, entry.key()) ? StreamRecord.of(group, lookUp(group), Rows.time(entry.value())) : null;
    }

    /** The result of a group; null if it has no members, or if they cannot be aggregated without one that has left. */
    @Override
    public InternalRow lookUp(byte[] group) {
      return EvaluationException.orNull(() -> total(group));
    }

    /** The latest time of a member. */
    @Override
    public long timeOf(byte[] group) {
      long latest = Long.MIN_VALUE;
      for (Store.Entry entry : task.store().startingWith(keys(STATE).bytes(group).done())) {
        latest = Math.max(latest, Rows.time(entry.value()));
      }
      return latest;
    }

    private InternalRow total(byte[] group) {
      UnsafeRow buffer = null;
      for (Store.Entry entry : task.store().startingWith(keys(STATE).bytes(group).done())) {
        UnsafeRow row = Rows.timedRow(entry.value(), members);
        StreamRecord member = StreamRecord.of(group, row, Rows.time(entry.value()));
        buffer = aggregator.add(buffer == null ? aggregator.empty() : buffer, member);
      }
      return buffer == null ? null : aggregator.result(buffer);
    }
  }
}
