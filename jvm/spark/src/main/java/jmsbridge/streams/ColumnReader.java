package jmsbridge.streams;

import jmsbridge.serdes.UnfitValueException;
import jmsbridge.serdes.ValueReader;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;

/** Reader of values by an expression, which gives their fields as one struct. */
final class ColumnReader implements ValueReader {
  private static final long serialVersionUID = 1L;

  private final Projection projection;

  ColumnReader(Projection projection) {
    this.projection = projection;
  }

  @Override
  public StructType type() {
    return (StructType) projection.type().fields()[0].dataType();
  }

  @Override
  public InternalRow read(byte[] value) {
    UnsafeRow read;
    try {
      read = projection.apply(new GenericInternalRow(new Object[] {value}));
    } catch (EvaluationException failure) {
      throw new UnfitValueException(failure.getMessage());
    }
    if (read.isNullAt(0)) {
      throw new UnfitValueException("the value is no JSON object");
    }
    return read.getStruct(0, type().size());
  }
}
