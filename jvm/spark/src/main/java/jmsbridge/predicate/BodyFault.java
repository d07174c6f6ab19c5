package jmsbridge.predicate;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/** Column function from the body of a record to the reason why it cannot be read as a format; null if it can. */
public final class BodyFault implements ScalarFunction<UTF8String> {
  private static final long serialVersionUID = 1L;

  private final Body.Format format;

  /** Function for a format, by its name. */
  public BodyFault(String format) {
    this.format = Body.Format.of(format);
  }

  /** The reason, as a sentence. */
  public UTF8String invoke(byte[] body) {
    BodyPaths none = new BodyPaths(JsonNodeFactory.instance.arrayNode());
    String fault = new Body(none, body).fault(format);
    return fault == null ? null : UTF8String.fromString(fault);
  }

  @Override
  public DataType[] inputTypes() {
    return new DataType[] {DataTypes.BinaryType};
  }

  @Override
  public DataType resultType() {
    return DataTypes.StringType;
  }

  @Override
  public String name() {
    return "body-fault:" + format;
  }

  @Override
  public String canonicalName() {
    return "jmsbridge." + name();
  }
}
