package jmsbridge.kafka;

import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/** Column function that finds the first header of one name among a record's headers. */
public abstract class HeaderFunction<T> implements ScalarFunction<T> {
  private static final long serialVersionUID = 1L;
  /** Type of a record's headers. */
  public static final DataType HEADERS = DataTypes.createArrayType(DataTypes.createStructType(List.of(
      DataTypes.createStructField("key", DataTypes.StringType, true),
      DataTypes.createStructField("value", DataTypes.BinaryType, true))));

  private final String function;
  private final DataType result;
  private final byte[] header;
  private transient UTF8String wanted;
  /** Place in the record before. */
  private transient HeaderArray.Place place;
  private transient Spellings spellings;

  private HeaderFunction(String function, DataType result, String header) {
    this.function = function;
    this.result = result;
    this.header = UTF8String.fromString(header).getBytes();
  }

  /** Text of the header, or of the property of which its name is another spelling; null without one or its value. */
  public static final class Text extends HeaderFunction<UTF8String> {
    private static final long serialVersionUID = 1L;

    /** Function that looks for the header of that name. */
    public Text(String header) {
      super("header", DataTypes.StringType, header);
    }

    /** The text, or null; the headers may be null. */
    public UTF8String invoke(ArrayData headers) {
      int index = find(headers);
      if (index < 0) {
        return headers == null ? null : spelled(headers);
      }
      if (headers instanceof HeaderArray record) {
        return record.text(index);
      }
      InternalRow header = headers.getStruct(index, 2);
      return header.isNullAt(1) ? null : UTF8String.fromBytes(header.getBinary(1));
    }
  }

  /** Whether there is such a header, with a value or without. */
  public static final class Has extends HeaderFunction<Boolean> {
    private static final long serialVersionUID = 1L;

    /** Function that looks for the header of that name. */
    public Has(String header) {
      super("has-header", DataTypes.BooleanType, header);
    }

    /** True if there is one; the headers may be null. */
    public boolean invoke(ArrayData headers) {
      return find(headers) >= 0;
    }
  }

  /** Text of the header that the wanted name is another spelling of; null for none. */
  final UTF8String spelled(ArrayData headers) {
    if (spellings == null) {
      spellings = new Spellings();
    }
    return spellings.find(headers, wanted);
  }

  /** Place of the header, -1 for none. */
  final int find(ArrayData headers) {
    if (wanted == null) {
      wanted = UTF8String.fromBytes(header);
    }
    if (headers instanceof HeaderArray record) {
      HeaderArray.Place known = place;
      if (known == null || !known.isOf(record)) {
        known = record.find(wanted);
        place = known;
      }
      return known.index();
    }
    for (int index = 0; headers != null && index < headers.numElements(); index++) {
      if (wanted.equals(headers.getStruct(index, 2).getUTF8String(0))) {
        return index;
      }
    }
    return -1;
  }

  @Override
  public DataType[] inputTypes() {
    return new DataType[] {HEADERS};
  }

  @Override
  public DataType resultType() {
    return result;
  }

  @Override
  public String name() {
    return function + ":" + UTF8String.fromBytes(header);
  }

  @Override
  public String canonicalName() {
    return "jmsbridge." + name();
  }

  @Override
  public String toString() {
    return name();
  }
}
