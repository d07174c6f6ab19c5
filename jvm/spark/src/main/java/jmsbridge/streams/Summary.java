package jmsbridge.streams;

import java.io.Serializable;
import org.apache.spark.sql.types.DataType;

/** Aggregate of values, of which a bounded number of bytes is kept. NULL values are passed over. */
interface Summary extends Serializable {
  /** Type of what is kept. */
  DataType keptType();

  /** Type of the result. */
  DataType type();

  /** What is kept with one more value; {@code kept} is null before the first one. */
  Object add(Object kept, Object value);

  /** What is kept of the values of two parts, neither of which is null. */
  Object merge(Object one, Object other);

  /** The result; {@code kept} is null without values. */
  Object result(Object kept);
}
