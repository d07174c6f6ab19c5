package jmsbridge.predicate;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import jmsbridge.kafka.HeaderFunction;
import jmsbridge.serdes.Documents;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/** Column function from headers and body of a record to the text of the value under a path; null if there is none. */
public final class BodyField extends NamedFunction<UTF8String> {
  private static final long serialVersionUID = 1L;

  private final String json;
  private final Documents documents;
  private final Bounds bounds;
  private final transient BodyPaths paths;

  /** Function for a path, as JSON in a list of its own. */
  public BodyField(String json) {
    this(json, Documents.used(), Bounds.used());
  }

  private BodyField(String json, Documents documents, Bounds bounds) {
    super("body:" + json, DataTypes.StringType, HeaderFunction.HEADERS, DataTypes.BinaryType);
    this.json = json;
    this.documents = documents;
    this.bounds = bounds;
    paths = read(json);
  }

  private static BodyPaths read(String json) {
    try {
      return new BodyPaths(new ObjectMapper().readTree(json));
    } catch (JsonProcessingException error) {
      throw new IllegalArgumentException(error);
    }
  }

  /** The text of the value under the path. */
  public UTF8String invoke(ArrayData headers, byte[] body) {
    Value field = new Body(paths, documents, bounds, headers, body).value(0);
    return field == null ? null : field.plain();
  }

  private Object readResolve() {
    return new BodyField(json, documents, bounds);
  }
}
