package jmsbridge.predicate;

import jmsbridge.kafka.HeaderFunction;
import jmsbridge.serdes.Documents;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/** Column function that edits the headers of a record as its route says. */
public final class EditedHeaders extends NamedFunction<ArrayData> {
  private static final long serialVersionUID = 1L;

  private final Documents documents = Documents.used();
  private final Bounds bounds = Bounds.used();
  /** Edits by their JSON: one for each route that has some. */
  private transient ByJson<HeaderEdits> known;

  /** The function; the name of it says nothing more. */
  public EditedHeaders(String name) {
    super(
        "edited-headers:" + name,
        HeaderFunction.HEADERS,
        HeaderFunction.HEADERS, DataTypes.StringType, DataTypes.BinaryType);
  }

  /**
   * The headers after the edits.
   *
   * @param headers headers of the record; null: none
   * @param edits JSON as {@link HeaderEdits} reads it; null: the headers stay as they are
   * @param body body of the record, from which texts of headers may come; null: none
   */
  public ArrayData invoke(ArrayData headers, UTF8String edits, byte[] body) {
    if (edits == null) {
      return headers;
    }
    if (known == null) {
      known = new ByJson<>(HeaderEdits::new);
    }
    return known.of(edits).edited(headers, documents, bounds, body);
  }
}
