package jmsbridge.predicate;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import jmsbridge.kafka.HeaderFunction;
import jmsbridge.serdes.Documents;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/** Column function from headers and body of a record to the reason why it cannot be read as a format; null if it can. */
public final class BodyFault extends NamedFunction<UTF8String> {
  private static final long serialVersionUID = 1L;

  private final Body.Format format;
  private final Documents documents = Documents.used();
  private final Bounds bounds = Bounds.used();

  /** Function for a format, by its name. */
  public BodyFault(String format) {
    super("body-fault:" + format, DataTypes.StringType, HeaderFunction.HEADERS, DataTypes.BinaryType);
    this.format = Body.Format.of(format);
  }

  /** The reason, as a sentence. */
  public UTF8String invoke(ArrayData headers, byte[] body) {
    BodyPaths none = new BodyPaths(JsonNodeFactory.instance.arrayNode());
    String fault = new Body(none, documents, bounds, headers, body).fault(format);
    return fault == null ? null : UTF8String.fromString(fault);
  }
}
