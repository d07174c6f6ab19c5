package jmsbridge.predicate;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import jmsbridge.serdes.Documents;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Edits of a route to the headers of its messages; {@code engine/explain/edited_headers.py} does the same for one
 * message. One thread uses an object for many records.
 */
final class HeaderEdits {
  /** Most bytes of the text that a header gets. */
  private static final int LONGEST_TEXT = 8192;

  private final Pattern removed;
  private final List<Rename> renames = new ArrayList<>();
  private final List<Given> given = new ArrayList<>();
  private final BodyPaths paths;

  /** New name of a header; {@code type} is the one to declare for it, empty for none, null for that of before. */
  private record Rename(UTF8String from, UTF8String to, String type) {}

  /** A header with its text. */
  private record Given(UTF8String header, TextTemplate template) {
    /** The text for a message; null if one of its values is missing or empty, or if it is too long. */
    byte[] text(ArrayData headers, Body body) {
      UTF8String text = template.text(headers, body);
      UTF8String valid = text == null ? null : text.makeValid();
      return valid == null || valid.numBytes() > LONGEST_TEXT ? null : valid.getBytes();
    }
  }

  /**
   * Edits in JSON: {@code removed}, a regular expression of names; {@code renamed}, lists of old name, new name and
   * type; {@code given}, lists of a name and the parts of its text as {@link TextTemplate} reads them; {@code paths}
   * into bodies.
   */
  HeaderEdits(JsonNode json) {
    removed = Pattern.compile(json.get("removed").asText(), Pattern.DOTALL);
    for (JsonNode rename : json.get("renamed")) {
      String type = rename.get(2).isNull() ? null : rename.get(2).asText();
      renames.add(new Rename(HeaderDraft.header(rename.get(0).asText()), HeaderDraft.header(rename.get(1).asText()), type));
    }
    for (JsonNode header : json.get("given")) {
      given.add(new Given(HeaderDraft.header(header.get(0).asText()), new TextTemplate(header.get(1))));
    }
    paths = new BodyPaths(json.get("paths"));
  }

  /** The headers after the edits; headers, reader of bodies with a schema, and body may be null. */
  ArrayData edited(ArrayData headers, Documents documents, Bounds bounds, byte[] content) {
    HeaderDraft draft = new HeaderDraft(headers);
    draft.remove(removed);
    for (Rename rename : renames) {
      draft.rename(rename.from, rename.to, rename.type);
    }
    Body body = new Body(paths, documents, bounds, headers, content);
    for (Given header : given) {
      draft.give(header.header, header.text(headers, body));
    }
    return draft.finish();
  }
}
