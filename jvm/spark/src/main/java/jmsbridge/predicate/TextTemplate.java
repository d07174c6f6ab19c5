package jmsbridge.predicate;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import jmsbridge.kafka.HeaderFunction;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.unsafe.types.UTF8String;

/** Text with values of a message in it; one thread uses an object for many records. */
final class TextTemplate {
  private final List<Part> parts = new ArrayList<>();

  /** Part of a text. */
  private interface Part {
    /** The part for a message; null if the message has no such value. */
    UTF8String of(ArrayData headers, Body body);
  }

  /** Template of parts: texts, fields of the message, or indexes of the paths that the body is asked for. */
  TextTemplate(JsonNode json) {
    json.forEach(part -> parts.add(part(part)));
  }

  private static Part part(JsonNode json) {
    if (json.isTextual()) {
      UTF8String constant = UTF8String.fromString(json.asText());
      return (headers, body) -> constant;
    }
    if (json.has("path")) {
      int path = json.get("path").asInt();
      return (headers, body) -> {
        Value value = body.value(path);
        return value == null ? null : value.plain();
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

  /** The text for a message; null if one of its values is missing or empty. Headers may be null. */
  UTF8String text(ArrayData headers, Body body) {
    UTF8String[] texts = new UTF8String[parts.size()];
    for (int index = 0; index < texts.length; index++) {
      texts[index] = parts.get(index).of(headers, body);
      if (texts[index] == null || texts[index].numBytes() == 0) {
        return null;
      }
    }
    return UTF8String.concat(texts);
  }
}
