package jmsbridge.streams;

import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;

/**
 * Nodes that join each row of a table, the left one, with the row of another table that an expression of it names.
 *
 * <p>A left row goes through an internal topic to the partition of its partner, which keeps it, and answers it through
 * another topic now and at each change of the partner. An answer carries the left row that it is for: one for a row that
 * has been replaced since is left out, since the present row has its own.
 */
final class ForeignKeys {
  private static final byte[] NOTHING = {};
  /** In place of a partner: the key of the partner cannot be computed, so the left row counts as no row. */
  private static final byte[] NO_KEY = {0};

  private ForeignKeys() {}

  /** True if an answer says, in the bytes from a position on, that the key of the partner cannot be computed. */
  static boolean isWithoutKey(byte[] answer, int from) {
    return Arrays.equals(answer, from, answer.length, NO_KEY, 0, NO_KEY.length);
  }

  /** Sends the changes of the left table to the partitions of their partners. */
  static final class Ask extends Node {
    private static final long serialVersionUID = 1L;
    private final KeyColumn on;
    private final String asks;
    private final String answers;

    Ask(String name, StructType type, KeyColumn on, String asks, String answers) {
      super(name, type);
      this.on = on;
      this.asks = asks;
      this.answers = answers;
    }

    @Override
    void process(StreamRecord record, int port) {
      byte[] former = record.before() == null ? null : EvaluationException.orNull(() -> on.of(record, record.before()));
      byte[] now = null;
      EvaluationException failed = null;
      try {
        now = record.value() == null ? null : on.of(record, record.value());
      } catch (EvaluationException failure) {
        failed = failure;
      }
      if (former != null && !Arrays.equals(former, now)) {
        send(asks, former, Pair.of(record.key(), NOTHING), record);
      }
      if (failed != null) {
        send(answers, record.key(), Pair.of(Rows.bytes(record.value()), NO_KEY), record);
        throw failed;
      }
      if (now != null) {
        send(asks, now, Pair.of(record.key(), Rows.bytes(record.value())), record);
      } else if (record.value() == null) {
        send(answers, record.key(), null, record);
      } else {
        task.count(name, "null_keys");
        send(answers, record.key(), Pair.of(Rows.bytes(record.value()), NOTHING), record);
      }
    }

    private void send(String topic, byte[] key, byte[] value, StreamRecord cause) {
      task.send(topic, key, value, cause.time(), cause.headers());
    }
  }

  /** Keeps the left rows under the keys of their partners, and answers them. */
  static final class Partner extends StatefulNode {
    private static final long serialVersionUID = 1L;
    private final Node right;
    private final String answers;

    Partner(String name, StructType type, Node right, String answers) {
      super(name, type);
      this.right = right;
      this.answers = answers;
    }

    @Override
    void process(StreamRecord record, int port) {
      if (port == Joins.RIGHT) {
        for (Store.Entry entry : task.store().startingWith(keys(STATE).bytes(record.key()).done())) {
          Keys.Reader reader = new Keys.Reader(entry.key());
          reader.bytes();
          answer(reader.bytes(), entry.value(), record.value(), record, record.time());
        }
        return;
      }
      byte[] asked = record.value().getBinary(0);
      byte[] key = Pair.first(asked);
      byte[] row = Pair.second(asked);
      byte[] stateKey = keys(STATE).bytes(record.key()).bytes(key).done();
      if (row.length == 0) {
        task.store().remove(stateKey);
      } else {
        task.store().put(stateKey, row);
        TableState partners = (TableState) right;
        long latest = Math.max(record.time(), partners.timeOf(record.key()));
        answer(key, row, partners.lookUp(record.key()), record, latest);
      }
    }

    private void answer(byte[] key, byte[] left, InternalRow partner, StreamRecord cause, long time) {
      byte[] value = Pair.of(left, partner == null ? NOTHING : Rows.bytes(partner));
      task.send(answers, key, value, time, cause.headers());
    }
  }

  /** Table of the joined rows, by the keys of the left table. */
  static final class Result extends ToTable {
    private static final long serialVersionUID = 1L;
    private final Node left;
    private final boolean isLeft;
    private final RowCheck rights;
    private transient Joins.Joiner joiner;

    Result(String name, StructType type, Node left, Node right, boolean isLeft) {
      super(name, type, -1);
      rights = new RowCheck(right.type);
      this.left = left;
      this.isLeft = isLeft;
    }

    @Override
    void open(TaskContext owner) {
      super.open(owner);
      joiner = new Joins.Joiner(type, left.type.size());
    }

    @Override
    void process(StreamRecord record, int port) {
      InternalRow present = ((TableState) left).lookUp(record.key());
      InternalRow now = null;
      if (record.value() == null) {
        if (present != null) {
          return;
        }
      } else {
        byte[] answer = record.value().getBinary(0);
        byte[] row = Pair.first(answer);
        if (present == null || !Arrays.equals(Rows.bytes(present), row)) {
          return;
        }
        byte[] partner = Pair.second(answer);
        if (!Arrays.equals(partner, NO_KEY)) {
          UnsafeRow right = partner.length == 0 ? null : rights.row(partner, 0);
          now = right != null || isLeft ? joiner.join(present, right) : null;
        }
      }
      change(record.withTime(Math.max(record.time(), ((TableState) left).timeOf(record.key()))), now);
    }
  }
}
