package jmsbridge.predicate;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.unsafe.types.UTF8String;

/** Paths into JSON bodies, by index. */
final class JsonPaths {
  /** Kinds of steps. */
  enum Kind { FIELD, ELEMENT, EACH }

  /** Step of a path: to a field, by its index among those asked of an object, to an element, or to each element. */
  record Step(Kind kind, int index) {}

  /** What paths ask of a value: its fields, its elements, and whether a path ends at it. */
  static final class Wanted {
    /** Number of fields up to which one is found by comparing with each. */
    private static final int FEW = 8;

    private final Map<UTF8String, Integer> indexes = new HashMap<>();
    private final List<byte[]> names = new ArrayList<>();
    private final List<Wanted> fields = new ArrayList<>();
    /** What paths ask of elements, whatever their index; null: nothing. */
    Wanted elements;
    boolean isEnd;

    /** Number of fields that are asked for. */
    int size() {
      return fields.size();
    }

    Wanted field(int index) {
      return fields.get(index);
    }

    /** Index of the field with the name that stands in a text; -1 if none is asked for. */
    int index(byte[] text, int start, int end) {
      if (names.size() > FEW) {
        return index(UTF8String.fromBytes(text, start, end - start));
      }
      for (int index = 0; index < names.size(); index++) {
        if (isAt(text, start, end, names.get(index))) {
          return index;
        }
      }
      return -1;
    }

    private static boolean isAt(byte[] text, int start, int end, byte[] name) {
      if (name.length != end - start) {
        return false;
      }
      for (int index = 0; index < name.length; index++) {
        if (text[start + index] != name[index]) {
          return false;
        }
      }
      return true;
    }

    /** Index of the field with that name; -1 if none is asked for. */
    int index(UTF8String name) {
      return indexes.getOrDefault(name, -1);
    }

    private int added(String name) {
      return indexes.computeIfAbsent(UTF8String.fromString(name), unused -> {
        names.add(name.getBytes(StandardCharsets.UTF_8));
        fields.add(new Wanted());
        return fields.size() - 1;
      });
    }

    private Wanted element() {
      if (elements == null) {
        elements = new Wanted();
      }
      return elements;
    }
  }

  final Wanted root = new Wanted();
  private final List<Step[]> paths = new ArrayList<>();

  /** Adds a path, a list of names, indexes (from the end if negative) and null for each element; returns its index. */
  int add(JsonNode path) {
    Step[] steps = new Step[path.size()];
    Wanted node = root;
    for (int index = 0; index < steps.length; index++) {
      JsonNode step = path.get(index);
      if (step.isTextual()) {
        steps[index] = new Step(Kind.FIELD, node.added(step.asText()));
        node = node.field(steps[index].index);
      } else {
        steps[index] = step.isNull() ? new Step(Kind.EACH, 0) : new Step(Kind.ELEMENT, step.intValue());
        node = node.element();
      }
    }
    node.isEnd = true;
    paths.add(steps);
    return paths.size() - 1;
  }

  Step[] steps(int path) {
    return paths.get(path);
  }
}
