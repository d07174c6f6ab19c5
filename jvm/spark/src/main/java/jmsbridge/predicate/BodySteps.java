package jmsbridge.predicate;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;

/** Conversions of a route's bodies, in their order; {@code routes/body_steps.py} is the same in Python. */
final class BodySteps {
  /** Change of a body. */
  private interface Change {
    byte[] apply(byte[] body) throws UnconvertibleBodyException;
  }

  /** A change with its name in the configuration. */
  private record Step(String name, Change change) {}

  private final List<Step> steps = new ArrayList<>();

  /** The steps that Python gives as JSON. */
  BodySteps(JsonNode json, Bounds bounds) {
    json.forEach(step -> steps.add(new Step(step.get("name").asText(), change(step, bounds))));
  }

  private static Change change(JsonNode step, Bounds bounds) {
    return switch (step.get("step").asText()) {
      case "gunzip" -> Gzip::decompressed;
      case "xml-to-json" -> body -> XmlToJson.convert(body, bounds);
      case "json-to-xml" -> body -> JsonToXml.convert(body, bounds);
      case "gzip" -> Gzip::compressed;
      case "from" -> new BodyCharset(step)::toUtf8;
      case "to" -> new BodyCharset(step)::fromUtf8;
      default -> throw new IllegalArgumentException("no step " + step.get("step"));
    };
  }

  /** The converted body; the exception says why there cannot be one. */
  byte[] body(byte[] body) throws UnconvertibleBodyException {
    byte[] converted = body;
    for (Step step : steps) {
      try {
        if (converted == null) {
          throw new UnconvertibleBodyException("the message has no body");
        }
        converted = bounded(step.change.apply(bounded(converted)));
      } catch (UnconvertibleBodyException error) {
        throw new UnconvertibleBodyException("'" + step.name + "' could not be applied: " + error.getMessage());
      }
    }
    return converted;
  }

  private static byte[] bounded(byte[] body) throws UnconvertibleBodyException {
    if (body.length > UnconvertibleBodyException.LARGEST) {
      throw UnconvertibleBodyException.tooLarge();
    }
    return body;
  }
}
