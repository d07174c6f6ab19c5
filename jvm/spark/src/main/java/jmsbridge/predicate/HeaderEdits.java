package jmsbridge.predicate;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import jmsbridge.kafka.HeaderFunction;
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

  /** Part of a text. */
  private interface Part {
    /** The part for a message; null if the message has no such value. */
    UTF8String of(ArrayData headers, Body body);
  }

  /** A header with the parts of its text. */
  private record Given(UTF8String header, List<Part> parts) {
    /** The text for a message; null if one of its values is missing or empty, or if it is too long. */
    byte[] text(ArrayData headers, Body body) {
      UTF8String[] texts = new UTF8String[parts.size()];
      for (int at = 0; at < texts.length; at++) {
        texts[at] = parts.get(at).of(headers, body);
        if (texts[at] == null || texts[at].numBytes() == 0) {
          return null;
        }
      }
      UTF8String text = UTF8String.concat(texts).makeValid();
      return text.numBytes() > LONGEST_TEXT ? null : text.getBytes();
    }
  }

  private HeaderEdits(JsonNode json) {
    removed = Pattern.compile(json.get("removed").asText(), Pattern.DOTALL);
    for (JsonNode each : json.get("renamed")) {
      String type = each.get(2).isNull() ? null : each.get(2).asText();
      renames.add(new Rename(HeaderDraft.header(each.get(0).asText()), HeaderDraft.header(each.get(1).asText()), type));
    }
    for (JsonNode each : json.get("given")) {
      List<Part> parts = new ArrayList<>();
      each.get(1).forEach(part -> parts.add(part(part)));
      given.add(new Given(HeaderDraft.header(each.get(0).asText()), parts));
    }
    paths = new BodyPaths(json.get("paths"));
  }

  private static Part part(JsonNode json) {
    if (json.isTextual()) {
      UTF8String constant = UTF8String.fromString(json.asText());
      return (headers, body) -> constant;
    }
    if (json.has("path")) {
      int path = json.get("path").asInt();
      return (headers, body) -> {
        Value found = body.value(path);
        return found == null ? null : found.plain();
      };
    }
    HeaderFunction.Text field = new HeaderFunction.Text(HeaderDraft.header(json.get("field").asText()).toString());
    if (!json.has("address")) {
      return (headers, body) -> field.invoke(headers);
    }
    return (headers, body) -> {
      UTF8String destination = field.invoke(headers);
      return destination == null ? null : Fields.address(destination);
    };
  }

  /**
   * Edits in JSON: {@code removed}, a regular expression of names; {@code renamed}, lists of old name, new name and type;
   * {@code given}, lists of a name and the parts of its text: texts, fields of the message, or the index of one of the
   * {@code paths} into bodies.
   */
  static HeaderEdits read(String json) {
    try {
      return new HeaderEdits(new ObjectMapper().readTree(json));
    } catch (JsonProcessingException error) {
      throw new IllegalArgumentException(error);
    }
  }

  /** The headers after the edits; headers and body may be null. */
  ArrayData edited(ArrayData headers, byte[] content) {
    HeaderDraft draft = new HeaderDraft(headers);
    draft.remove(removed);
    for (Rename each : renames) {
      draft.rename(each.from, each.to, each.type);
    }
    Body body = new Body(paths, content);
    for (Given each : given) {
      draft.give(each.header, each.text(headers, body));
    }
    return draft.finish();
  }
}
