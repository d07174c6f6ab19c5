package jmsbridge.predicate;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Paths into JSON bodies, by index; a path is a list of steps: the name of a field, the index of an element (from the
 * end if it is negative), or null for each element.
 */
final class JsonPaths {
  /** What paths ask of a value: its fields by name, its elements, and whether a path ends at it. */
  static final class Wanted {
    final Map<String, Wanted> fields = new HashMap<>();
    /** What paths ask of elements, whatever their index; null: nothing. */
    Wanted elements;
    boolean isEnd;

    private Wanted element() {
      if (elements == null) {
        elements = new Wanted();
      }
      return elements;
    }
  }

  final Wanted root = new Wanted();
  private final List<Object[]> paths = new ArrayList<>();

  /** Adds a path and returns its index. */
  int add(JsonNode path) {
    Object[] steps = new Object[path.size()];
    Wanted at = root;
    for (int index = 0; index < steps.length; index++) {
      JsonNode step = path.get(index);
      if (step.isTextual()) {
        steps[index] = step.asText();
        at = at.fields.computeIfAbsent(step.asText(), unused -> new Wanted());
      } else {
        steps[index] = step.isNull() ? null : Integer.valueOf(step.intValue());
        at = at.element();
      }
    }
    at.isEnd = true;
    paths.add(steps);
    return paths.size() - 1;
  }

  Object[] steps(int path) {
    return paths.get(path);
  }
}
