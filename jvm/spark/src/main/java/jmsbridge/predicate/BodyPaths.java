package jmsbridge.predicate;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;

/** Paths into bodies, by index: into JSON as lists, into XML as objects of {@code routes/predicate/rule_json.py}. */
final class BodyPaths {
  final JsonPaths json = new JsonPaths();
  final XmlPaths xml = new XmlPaths();
  /** Index of each path among those of its format; that of a path into XML as -1 - index. */
  private final List<Integer> places = new ArrayList<>();

  BodyPaths(JsonNode paths) {
    for (JsonNode path : paths) {
      places.add(path.isArray() ? json.add(path) : -1 - xml.add(path));
    }
  }

  boolean isXml(int path) {
    return places.get(path) < 0;
  }

  JsonPaths.Step[] steps(int path) {
    return json.steps(places.get(path));
  }

  XmlPaths.Path xmlPath(int path) {
    return xml.path(-1 - places.get(path));
  }
}
