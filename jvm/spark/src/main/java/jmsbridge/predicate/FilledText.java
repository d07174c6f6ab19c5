package jmsbridge.predicate;

import com.fasterxml.jackson.databind.JsonNode;
import jmsbridge.kafka.HeaderFunction;
import jmsbridge.serdes.Documents;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/** Column function that fills a template of text with the values of a message. */
public final class FilledText extends NamedFunction<UTF8String> {
  private static final long serialVersionUID = 1L;

  private final Documents documents = Documents.used();
  private final Bounds bounds = Bounds.used();
  /** Templates by their JSON: one for each destination that has values of the message in it. */
  private transient ByJson<Template> known;

  /** Template with the paths into bodies that it asks for. */
  private record Template(TextTemplate text, BodyPaths paths) {
    static Template read(JsonNode json) {
      return new Template(new TextTemplate(json.get("parts")), new BodyPaths(json.get("paths")));
    }
  }

  /** The function; the name of it says nothing more. */
  public FilledText(String name) {
    super(
        "filled:" + name,
        DataTypes.StringType,
        HeaderFunction.HEADERS, DataTypes.StringType, DataTypes.BinaryType);
  }

  /**
   * The text; null if there is no template, or if one of its values is missing or empty.
   *
   * @param headers headers of the record; null: none
   * @param template JSON with {@code parts}, as {@link TextTemplate} reads them, and {@code paths}; null: none
   * @param body body of the record; null: none
   */
  public UTF8String invoke(ArrayData headers, UTF8String template, byte[] body) {
    if (template == null) {
      return null;
    }
    if (known == null) {
      known = new ByJson<>(Template::read);
    }
    Template parsed = known.of(template);
    return parsed.text.text(headers, new Body(parsed.paths, documents, bounds, headers, body));
  }
}
