package jmsbridge.streams;

import java.io.Serializable;
import jmsbridge.serdes.UnfitValueException;
import jmsbridge.serdes.ValueWriter;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;

/** Writer of the keys of a topic that are not there as the program has them. */
public final class KeyWriter implements Serializable {
  private static final long serialVersionUID = 1L;

  private final Projection column;
  private final ValueWriter writer;

  /** Creates a writer of keys; {@code column} computes what {@code writer} makes bytes of. */
  KeyWriter(Projection column, ValueWriter writer) {
    this.column = column;
    this.writer = writer;
  }

  /** The bytes of a record's key for a topic; null if it has none. EvaluationException if it does not fit. */
  byte[] write(String topic, StreamRecord record) {
    if (record.key() == null) {
      return null;
    }
    UnsafeRow key = column.apply(record, null);
    try {
      return writer.write(topic, key);
    } catch (UnfitValueException unfit) {
      throw new EvaluationException(new UnfitValueException("the key cannot be written: " + unfit.getMessage()));
    }
  }
}
