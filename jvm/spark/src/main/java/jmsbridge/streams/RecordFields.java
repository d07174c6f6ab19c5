package jmsbridge.streams;

import java.io.Serializable;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import org.apache.kafka.common.header.Header;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Row of a record for generated code: the fields of its value, then those about it that the code asks for. */
final class RecordFields implements Serializable {
  private static final long serialVersionUID = 1L;

  /** Fields of a record beside those of its value, in this order behind them. */
  private static final List<String> ABOUT = List.of("key", "timestamp", "headers", "topic", "partition", "offset");

  private final boolean[] asked = new boolean[ABOUT.size()];
  private boolean asksAny;
  private final int own;
  private final KeyKind key;
  private transient JoinedRow joined;
  private transient GenericInternalRow about;
  private transient InternalRow nothing;

  /** Creates the row of records with keys of a kind, for expressions over the columns of a frame of such records. */
  RecordFields(Seq<Attribute> input, KeyKind key, Seq<? extends Expression> expressions) {
    this.key = key;
    List<Attribute> columns = CollectionConverters.asJava(input);
    own = columns.size() - asked.length;
    Set<Object> ids = new HashSet<>();
    for (Iterator<? extends Expression> each = CollectionConverters.asJava(expressions.iterator()); each.hasNext(); ) {
      CollectionConverters.asJava(each.next().references().iterator())
          .forEachRemaining(attribute -> ids.add(attribute.exprId()));
    }
    for (int at = 0; at < asked.length; at++) {
      asked[at] = ids.contains(columns.get(own + at).exprId());
      asksAny |= asked[at];
    }
  }

  /** The row; it is used again at the next call. A missing value has no fields. */
  InternalRow of(StreamRecord record, InternalRow value) {
    if (joined == null) {
      joined = new JoinedRow();
      about = new GenericInternalRow(asked.length);
      nothing = new GenericInternalRow(own);
    }
    if (!asksAny) {
      // Of a joined row, each field costs a call more.
      return value == null ? nothing : value;
    }
    for (int at = 0; at < asked.length; at++) {
      if (asked[at]) {
        about.update(at, field(at, record));
      }
    }
    return joined.apply(value == null ? nothing : value, about);
  }

  private Object field(int at, StreamRecord record) {
    return switch (at) {
      case 0 -> record.key() == null ? null : key.read(record.key());
      case 1 -> record.time() == StreamRecord.NO_TIME ? null : record.time() * 1000;
      case 2 -> headers(record.headers());
      case 3 -> record.topic() == null ? null : UTF8String.fromString(record.topic());
      case 4 -> record.partition();
      default -> record.offset();
    };
  }

  static GenericArrayData headers(Header[] headers) {
    Object[] rows = new Object[headers.length];
    for (int at = 0; at < rows.length; at++) {
      UTF8String name = UTF8String.fromString(headers[at].key());
      rows[at] = new GenericInternalRow(new Object[] {name, headers[at].value()});
    }
    return new GenericArrayData(rows);
  }
}
