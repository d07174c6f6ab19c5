package jmsbridge.streams;

import jmsbridge.serdes.ValueWriter;
import org.apache.spark.sql.catalyst.InternalRow;

/** Writer of values that an expression has made bytes of. */
final class ColumnWriter implements ValueWriter {
  private static final long serialVersionUID = 1L;

  @Override
  public byte[] write(String topic, InternalRow value) {
    return value.isNullAt(0) ? null : value.getBinary(0);
  }
}
