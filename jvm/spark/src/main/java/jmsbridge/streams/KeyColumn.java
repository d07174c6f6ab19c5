package jmsbridge.streams;

import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;

/** Key that is computed from records: the column that gives it, and its kind. */
record KeyColumn(Projection column, KeyKind kind) implements Serializable {
  /** The bytes of the key for a record with this value; null: none. */
  byte[] of(StreamRecord record, InternalRow value) {
    return kind.write(column.apply(record, value));
  }
}
