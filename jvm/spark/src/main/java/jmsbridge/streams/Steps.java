package jmsbridge.streams;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import jmsbridge.serdes.UnfitValueException;
import jmsbridge.serdes.ValueReader;
import jmsbridge.serdes.ValueWriter;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * Nodes without state. In a table, a step is taken for the value and for the one that it replaces. A value for which it
 * fails counts as no row: it replaces the row before it, and is rejected; a later value replaces nothing.
 */
final class Steps {
  private Steps() {}

  /** Passes all records: a merge, a branch, or the first node behind a table that is read as a stream. */
  static final class Pass extends Node {
    private static final long serialVersionUID = 1L;
    private final boolean keepsChange;
    private final boolean keepsRemovals;

    Pass(String name, StructType type, boolean keepsChange, boolean keepsRemovals) {
      super(name, type);
      this.keepsChange = keepsChange;
      this.keepsRemovals = keepsRemovals;
    }

    @Override
    void process(StreamRecord record, int port) {
      if (record.value() != null || keepsRemovals) {
        forward(keepsChange ? record : record.withValue(record.value()));
      }
    }
  }

  /** Passes the records for which a condition is true, or, if negated, those for which it is not. */
  static final class Filter extends Node {
    private static final long serialVersionUID = 1L;
    private final Projection condition;
    private final boolean isNegated;
    private final boolean isTable;

    Filter(String name, StructType type, Projection condition, boolean isNegated, boolean isTable) {
      super(name, type);
      this.condition = condition;
      this.isNegated = isNegated;
      this.isTable = isTable;
    }

    @Override
    void process(StreamRecord record, int port) {
      if (!isTable) {
        if (passes(record, record.value())) {
          forward(record);
        }
        return;
      }
      change(record, value -> passes(record, value) ? value : null);
    }

    private boolean passes(StreamRecord record, InternalRow value) {
      UnsafeRow result = condition.apply(record, value);
      return isNegated != (!result.isNullAt(0) && result.getBoolean(0));
    }
  }

  /** Passes each record to the first consumer whose condition is true; the last one takes all others if it has none. */
  static final class Branches extends Node {
    private static final long serialVersionUID = 1L;
    private final Projection conditions;
    private final boolean hasDefault;

    Branches(String name, StructType type, Projection conditions, boolean hasDefault) {
      super(name, type);
      this.conditions = conditions;
      this.hasDefault = hasDefault;
    }

    @Override
    void process(StreamRecord record, int port) {
      int count = conditions.type().size();
      UnsafeRow result = conditions.apply(record, record.value());
      for (int at = 0; at < count; at++) {
        if (!result.isNullAt(at) && result.getBoolean(at)) {
          pass(record, at);
          return;
        }
      }
      if (hasDefault) {
        pass(record, count);
      }
    }
  }

  /** Gives the records other fields. */
  static final class MapValues extends Node {
    private static final long serialVersionUID = 1L;
    private final Projection fields;
    private final boolean isTable;

    MapValues(String name, Projection fields, boolean isTable) {
      super(name, fields.type());
      this.fields = fields;
      this.isTable = isTable;
    }

    @Override
    void process(StreamRecord record, int port) {
      if (isTable) {
        change(record, value -> fields.apply(record, value).copy());
      } else {
        // A null value is a removal, and stays one.
        forward(record.withValue(record.value() == null ? null : fields.apply(record, record.value()).copy()));
      }
    }
  }

  /** Gives each record another key. */
  static final class SelectKey extends Node {
    private static final long serialVersionUID = 1L;
    private final KeyColumn key;

    SelectKey(String name, StructType type, KeyColumn key) {
      super(name, type);
      this.key = key;
    }

    @Override
    void process(StreamRecord record, int port) {
      if (record.value() != null || record.before() == null) {
        forward(record.withKey(key.of(record, record.value())));
        return;
      }
      // A removal in a table has the key of what is removed, which came no further if it has none.
      byte[] former = EvaluationException.orNull(() -> key.of(record, record.before()));
      if (former != null) {
        forward(record.withKey(former));
      }
    }
  }

  /** Sets and removes headers; the others keep their order, before those that are set. */
  static final class WithHeaders extends Node {
    private static final long serialVersionUID = 1L;
    private final Set<String> replaced;
    private final List<String> set;
    private final Projection values;

    /** Creates the node; {@code values} are the bytes of the headers that are set, of which null ones are left out. */
    WithHeaders(String name, StructType type, Set<String> replaced, List<String> set, Projection values) {
      super(name, type);
      this.replaced = replaced;
      this.set = set;
      this.values = values;
    }

    @Override
    void process(StreamRecord record, int port) {
      List<Header> headers = new ArrayList<>();
      for (Header each : record.headers()) {
        if (!replaced.contains(each.key())) {
          headers.add(each);
        }
      }
      if (!set.isEmpty()) {
        UnsafeRow row = values.apply(record, record.value());
        for (int at = 0; at < set.size(); at++) {
          if (!row.isNullAt(at)) {
            headers.add(new RecordHeader(set.get(at), row.getBinary(at)));
          }
        }
      }
      forward(record.withHeaders(headers.toArray(StreamRecord.NO_HEADERS)));
    }
  }

  /** Makes a record of each element of an array of structs, or of values, in a column. */
  static final class FlatMap extends Node {
    private static final long serialVersionUID = 1L;
    private final Projection array;
    private final DataType element;
    private final boolean isStruct;

    FlatMap(String name, StructType type, Projection array, DataType element) {
      super(name, type);
      this.array = array;
      this.element = element;
      isStruct = element instanceof StructType;
    }

    @Override
    void process(StreamRecord record, int port) {
      UnsafeRow result = array.apply(record, record.value());
      if (result.isNullAt(0)) {
        return;
      }
      var elements = result.getArray(0).copy();
      var copier = Rows.copier(type);
      for (int at = 0; at < elements.numElements(); at++) {
        if (elements.isNullAt(at)) {
          continue;
        }
        InternalRow row = isStruct
            ? elements.getStruct(at, type.size())
            : new org.apache.spark.sql.catalyst.expressions.GenericInternalRow(
                new Object[] {elements.get(at, element)});
        forward(record.withValue(copier.apply(row).copy()));
      }
    }
  }

  /** Ends a way of the program: publishes each record to a topic, constant or from the record. */
  static final class Sink extends Node {
    private static final long serialVersionUID = 1L;
    private final String topic;
    private final Projection chosen;
    private final Projection value;
    private final ValueWriter writer;
    private final KeyWriter keys;

    /**
     * Creates the sink.
     *
     * @param chosen the topic of each record if {@code topic} is null
     * @param value what the writer makes bytes of; null: the record's value
     * @param keys writer of the keys; null: they are published as they are
     */
    Sink(
        String name, StructType type, String topic, Projection chosen, Projection value, ValueWriter writer,
        KeyWriter keys) {
      super(name, type);
      this.topic = topic;
      this.chosen = chosen;
      this.value = value;
      this.writer = writer;
      this.keys = keys;
    }

    /** The topic of all records; null if each record chooses its own. */
    String topic() {
      return topic;
    }

    @Override
    void process(StreamRecord record, int port) {
      String to = topic == null ? choice(record) : topic;
      if (to == null) {
        return;
      }
      byte[] bytes = null;
      if (record.value() != null) {
        InternalRow fields = value == null ? record.value() : value.apply(record, record.value());
        try {
          bytes = writer.write(to, fields);
        } catch (UnfitValueException unfit) {
          throw new EvaluationException(unfit);
        }
      }
      byte[] written = keys == null ? record.key() : keys.write(to, record);
      task.send(to, written, bytes, record.time(), record.headers());
    }

    private String choice(StreamRecord record) {
      UnsafeRow result = chosen.apply(record, record.value());
      return result.isNullAt(0) ? null : result.getUTF8String(0).toString();
    }
  }

  /** Sends records to an internal topic, whose readers have all records of a key in one task. */
  static final class Repartition extends Node {
    private static final long serialVersionUID = 1L;
    private final String topic;
    private final boolean keepsNullKeys;

    /** Creates the node; {@code keepsNullKeys} is for a join behind it that has results for records without a key. */
    Repartition(String name, StructType type, String topic, boolean keepsNullKeys) {
      super(name, type);
      this.topic = topic;
      this.keepsNullKeys = keepsNullKeys;
    }

    @Override
    void process(StreamRecord record, int port) {
      if (record.key() == null && !keepsNullKeys) {
        // Kafka Streams: such records cannot be aggregated.
        task.count(name, "null_keys");
        return;
      }
      byte[] value = record.value() == null ? null : Rows.bytes(record.value());
      task.send(topic, record.key(), value, record.time(), record.headers());
    }
  }

  /** Source: reads the key and value of the records of a topic; those that it cannot read are rejected. */
  static final class Source extends Node {
    private static final long serialVersionUID = 1L;
    final String topic;
    /** Milliseconds by which a record may be later than the clock; below 0: any number. */
    final long maxAhead;
    private final KeyReader keys;
    private final ValueReader reader;

    Source(String name, StructType type, String topic, KeyReader keys, ValueReader reader, long maxAhead) {
      super(name, type);
      this.topic = topic;
      this.maxAhead = maxAhead;
      this.keys = keys;
      this.reader = reader;
    }

    /** Reads a record's key and its value, in the field {@code value} of the given record, and forwards it. */
    @Override
    void process(StreamRecord record, int port) {
      if (task.isAhead(maxAhead)) {
        throw EvaluationException.ahead(record.time(), maxAhead);
      }
      byte[] bytes = record.value() == null ? null : record.value().getBinary(0);
      String part = "key";
      StreamRecord read;
      try {
        byte[] key = keys.read(record.key());
        if (key == null && reader instanceof RowReader internal && !internal.allowsNoKey()) {
          throw new UnfitValueException("each record of an internal topic has a key");
        }
        read = key == record.key() ? record : record.withKey(key);
        part = "value";
        read = read.withValue(value(bytes));
      } catch (UnfitValueException unfit) {
        task.reject(name, part, record, bytes, new EvaluationException(unfit));
        return;
      }
      forward(read);
    }

    /** Begins to fetch what is needed to read these records. */
    void expect(List<ConsumerRecord<byte[], byte[]>> records) {
      keys.expect(records.stream().map(ConsumerRecord::key));
      if (reader != null) {
        reader.expect(records.stream().map(ConsumerRecord::value));
      }
    }

    /** Whether the topic is one of the program's own. */
    boolean isInternal() {
      return reader instanceof RowReader;
    }

    private InternalRow value(byte[] bytes) {
      if (reader instanceof RowReader internal) {
        return internal.read(bytes);
      }
      return bytes == null ? null : reader.read(bytes).copy();
    }
  }

  static boolean same(StructType one, StructType other) {
    return Arrays.equals(one.fieldNames(), other.fieldNames())
        && one.asNullable().sameType(other.asNullable());
  }
}
