package jmsbridge.kafka;

import static jmsbridge.kafka.ReadOnly.changed;
import static jmsbridge.kafka.ReadOnly.kept;
import static jmsbridge.kafka.ReadOnly.mistyped;

import java.util.Set;
import java.util.stream.IntStream;
import org.apache.kafka.common.header.Header;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.BinaryView;
import org.apache.spark.unsafe.types.CalendarInterval;
import org.apache.spark.unsafe.types.TimestampNanosVal;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.unsafe.types.VariantVal;

/**
 * Headers of the record that a task reads, as an array of Spark: structs of key (text) and value (binary, may be null).
 *
 * <p>Nothing is copied: values are those of Kafka's headers, and are valid until the next record is read. The object
 * serves all records of a reader. Places outside the array have no value.
 */
public final class HeaderArray extends ArrayData {
  private static final long serialVersionUID = 1L;
  private static final Header[] NONE = {};

  private final transient HeaderLayout.Tree layouts = new HeaderLayout.Tree();
  private transient HeaderLayout layout;
  private transient HeaderLayout[] names = {};
  private transient Header[] headers = NONE;

  /** Index of the first header of a name, -1 for none, in all records with this layout. */
  public record Place(Object layout, int index) {
    /** True if the place holds for the headers of this record. */
    public boolean isOf(HeaderArray headers) {
      return layout == headers.layout;
    }
  }

  /** Indexes of all headers of some names, in all records with this layout. */
  public record Places(Object layout, int[] indexes) {
    /** True if the places hold for the headers of this record. */
    public boolean isOf(HeaderArray headers) {
      return layout == headers.layout;
    }
  }

  /** Array without headers. */
  public HeaderArray() {}

  /** Takes the headers of the next record. */
  public void set(Header[] given) {
    headers = given;
    HeaderLayout known = layouts.of(given);
    if (known != layout) {
      layout = known;
      names = known.names();
    }
  }

  /** Place of the first header of this name; records with the same names in the same order share it. */
  public Place find(UTF8String name) {
    return new Place(layout, layout.find(name));
  }

  /** Places of all headers of these names. */
  public Places find(Set<UTF8String> wanted) {
    int[] indexes = IntStream.range(0, names.length).filter(at -> wanted.contains(names[at].name())).toArray();
    return new Places(layout, indexes);
  }

  /** Value of the header at a place as text, not copied; null for none. */
  public UTF8String text(int place) {
    byte[] value = place < 0 ? null : headers[place].value();
    return value == null ? null : UTF8String.fromBytes(value);
  }

  /** Kafka's headers under the names that were recognised, so that nobody decodes a name. */
  Header[] named() {
    Header[] given = new Header[headers.length];
    for (int place = 0; place < given.length; place++) {
      given[place] = new NamedHeader(names[place].text(), headers[place]);
    }
    return given;
  }

  private record NamedHeader(String key, Header given) implements Header {
    @Override
    public byte[] value() {
      return given.value();
    }
  }

  @Override
  public int numElements() {
    return headers.length;
  }

  @Override
  public InternalRow getStruct(int place, int fields) {
    return new GenericInternalRow(new Object[] {names[place].name(), headers[place].value()});
  }

  @Override
  public Object get(int place, DataType type) {
    return getStruct(place, 2);
  }

  @Override
  public boolean isNullAt(int place) {
    return false;
  }

  @Override
  public Object[] array() {
    Object[] all = new Object[headers.length];
    for (int place = 0; place < all.length; place++) {
      all[place] = getStruct(place, 2);
    }
    return all;
  }

  /** Throws: only the record that was read last is there. */
  @Override
  public ArrayData copy() {
    throw kept();
  }

  @Override
  public void setNullAt(int place) {
    throw changed();
  }

  @Override
  public void update(int place, Object value) {
    throw changed();
  }

  @Override
  public boolean getBoolean(int place) {
    throw mistyped(place);
  }

  @Override
  public byte getByte(int place) {
    throw mistyped(place);
  }

  @Override
  public short getShort(int place) {
    throw mistyped(place);
  }

  @Override
  public int getInt(int place) {
    throw mistyped(place);
  }

  @Override
  public long getLong(int place) {
    throw mistyped(place);
  }

  @Override
  public float getFloat(int place) {
    throw mistyped(place);
  }

  @Override
  public double getDouble(int place) {
    throw mistyped(place);
  }

  @Override
  public Decimal getDecimal(int place, int precision, int scale) {
    throw mistyped(place);
  }

  @Override
  public UTF8String getUTF8String(int place) {
    throw mistyped(place);
  }

  @Override
  public byte[] getBinary(int place) {
    throw mistyped(place);
  }

  @Override
  public BinaryView getBinaryView(int place) {
    throw mistyped(place);
  }

  @Override
  public CalendarInterval getInterval(int place) {
    throw mistyped(place);
  }

  @Override
  public TimestampNanosVal getTimestampNTZNanos(int place) {
    throw mistyped(place);
  }

  @Override
  public TimestampNanosVal getTimestampLTZNanos(int place) {
    throw mistyped(place);
  }

  @Override
  public VariantVal getVariant(int place) {
    throw mistyped(place);
  }

  @Override
  public ArrayData getArray(int place) {
    throw mistyped(place);
  }

  @Override
  public MapData getMap(int place) {
    throw mistyped(place);
  }
}
