package jmsbridge.serdes;

import java.io.Serializable;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;

/** Reader of the values of a topic. */
public interface ValueReader extends Serializable {
  /** Fields of the values. */
  StructType type();

  /** Begins to fetch what is needed to read these values, of which some may be null. */
  default void expect(Stream<byte[]> values) {}

  /** The fields of a value, as a row that is used again at the next call; UnfitValueException if it does not fit. */
  InternalRow read(byte[] value);
}
