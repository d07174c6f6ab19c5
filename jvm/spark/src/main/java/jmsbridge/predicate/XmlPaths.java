package jmsbridge.predicate;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Paths into XML bodies, by index. */
final class XmlPaths {
  /** Step to the children of a local name; position from 1, -1 for the last, 0 for all. */
  record Step(String name, int position) {}

  /** Path to an attribute, or to the text of an element; null attribute: the text. */
  record Path(Step[] steps, String attribute, boolean isOwnText, boolean isNumber) {}

  /** What paths ask of an element. */
  static final class Wanted {
    final Map<String, Wanted> children = new HashMap<>();
    final Set<String> attributes = new HashSet<>();
    boolean hasText;
    boolean hasOwnText;
  }

  /** What paths ask of the document, around the root element. */
  final Wanted root = new Wanted();
  private final List<Path> paths = new ArrayList<>();

  /** Adds a path and returns its index. */
  int add(JsonNode node) {
    Step[] steps = new Step[node.get("steps").size()];
    Wanted wanted = root;
    for (int index = 0; index < steps.length; index++) {
      JsonNode step = node.get("steps").get(index);
      steps[index] = new Step(step.get(0).asText(), step.get(1).asInt());
      wanted = wanted.children.computeIfAbsent(steps[index].name, unused -> new Wanted());
    }
    String attribute = node.hasNonNull("attribute") ? node.get("attribute").asText() : null;
    boolean isOwnText = node.get("own").booleanValue();
    if (attribute != null) {
      wanted.attributes.add(attribute);
    } else if (isOwnText) {
      wanted.hasOwnText = true;
    } else {
      wanted.hasText = true;
    }
    paths.add(new Path(steps, attribute, isOwnText, node.get("number").booleanValue()));
    return paths.size() - 1;
  }

  Path path(int index) {
    return paths.get(index);
  }
}
