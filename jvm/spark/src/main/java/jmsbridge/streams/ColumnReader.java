package jmsbridge.streams;

import jmsbridge.serdes.JsonNumbers;
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
  private final JsonNumbers numbers;

  private ColumnReader(Projection projection, boolean isJson) {
    this.projection = projection;
    numbers = isJson ? new JsonNumbers(type()) : null;
  }

  /** The reader of an expression over bytes. */
  static ColumnReader of(Projection projection) {
    return new ColumnReader(projection, false);
  }

  /** The reader of an expression that reads JSON objects, in which it would not take all numbers as they are. */
  static ColumnReader ofJson(Projection projection) {
    return new ColumnReader(projection, true);
  }

  @Override
  public StructType type() {
    return (StructType) projection.type().fields()[0].dataType();
  }

  @Override
  public InternalRow read(byte[] value) {
    UnsafeRow read;
    try {
      read = projection.apply(new GenericInternalRow(new Object[] {numbers == null ? value : numbers.checked(value)}));
    } catch (EvaluationException failure) {
      throw new UnfitValueException(failure.getMessage());
    }
    if (read.isNullAt(0)) {
      throw new UnfitValueException("the value is not a JSON object");
    }
    return read.getStruct(0, type().size());
  }
}
