package jmsbridge.predicate;

import jmsbridge.kafka.HeaderFunction;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/** Column function that reads the declared type of one JMS property from a record's headers; empty text: none. */
public final class DeclaredType extends NamedFunction<UTF8String> {
  private static final long serialVersionUID = 1L;

  private final HeaderFunction.Text header = new HeaderFunction.Text(Declared.HEADER);
  private final String property;
  /** Header and type of the record before; the next mostly has the same. */
  private transient UTF8String types;
  private transient UTF8String type;

  /** Function for the property of that name, as the header spells it. */
  public DeclaredType(String property) {
    super("declared-type:" + property, DataTypes.StringType, HeaderFunction.HEADERS);
    this.property = property;
  }

  /** The type's name; the headers may be null. */
  public UTF8String invoke(ArrayData headers) {
    UTF8String found = header.invoke(headers);
    if (found == null) {
      return UTF8String.EMPTY_UTF8;
    }
    if (!found.equals(types)) {
      Declared declared = Declared.read(found).get(property);
      type = declared == null ? UTF8String.EMPTY_UTF8 : UTF8String.fromString(declared.text());
      types = found.clone();
    }
    return type;
  }
}
