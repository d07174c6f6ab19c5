package jmsbridge.streams;

import jmsbridge.serdes.UnfitValueException;
import jmsbridge.serdes.ValueReader;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.StructType;

/**
 * Reader of the values of an internal topic: rows, or pairs of bytes and a row, which the next node takes apart. Others
 * than the topology may have written them, so each is checked.
 */
final class RowReader implements ValueReader {
  private static final long serialVersionUID = 1L;

  private final StructType type;
  private final RowCheck check;
  private final boolean isPair;
  private final boolean allowsNone;
  private final boolean allowsNoKey;
  /** Aggregator of which there are buffers beside the rows; null: there are none. */
  private final Aggregator aggregator;

  private RowReader(
      StructType type, StructType row, boolean isPair, boolean allowsNone, boolean allowsNoKey, Aggregator aggregator) {
    this.type = type;
    this.isPair = isPair;
    this.allowsNone = allowsNone;
    this.allowsNoKey = allowsNoKey;
    this.aggregator = aggregator;
    check = new RowCheck(row);
  }

  /** Reader of rows; a record can be without one. */
  static RowReader ofRows(StructType type, boolean allowsNoKey) {
    return new RowReader(type, type, false, true, allowsNoKey, null);
  }

  /** Reader of pairs, in the one field of {@code type}; the second of each is empty or a row of {@code row}. */
  static RowReader ofPairs(StructType type, StructType row) {
    return new RowReader(type, row, true, false, false, null);
  }

  /** Reader of the answers to a table that is joined by foreign keys: pairs, or none for a row that is gone. */
  static RowReader ofAnswers(StructType type, StructType row) {
    return new RowReader(type, row, true, true, false, null);
  }

  /** Reader of rows, and of a {@link Partial} in the place of several of them. */
  static RowReader ofRows(StructType type, Aggregator aggregator) {
    return new RowReader(type, type, false, true, false, aggregator);
  }

  /** True if a record can be without a key. */
  boolean allowsNoKey() {
    return allowsNoKey;
  }

  @Override
  public StructType type() {
    return type;
  }

  /** The fields of a value, which may be null; of the given bytes and not a copy. */
  @Override
  public InternalRow read(byte[] value) {
    if (value == null) {
      if (!allowsNone) {
        throw new UnfitValueException("each record of this internal topic has a value");
      }
      return null;
    }
    if (aggregator != null && Partial.is(value)) {
      return Partial.read(value, aggregator.fingerprint(), aggregator.buffers());
    }
    if (!isPair) {
      return check.row(value, 0);
    }
    int begin = Pair.beginOfSecond(value);
    if (begin < value.length && !(allowsNone && ForeignKeys.isWithoutKey(value, begin))) {
      check.row(value, begin);
    }
    return new GenericInternalRow(new Object[] {value});
  }
}
