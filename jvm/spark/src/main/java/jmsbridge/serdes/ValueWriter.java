package jmsbridge.serdes;

import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;

/** Writer of the values of a topic. */
public interface ValueWriter extends Serializable {
  /** The bytes of a value for a topic; null: a record without a value. UnfitValueException if it does not fit. */
  byte[] write(String topic, InternalRow value);
}
