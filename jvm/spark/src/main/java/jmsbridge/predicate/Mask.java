package jmsbridge.predicate;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.StringJoiner;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Mask of the values under paths into a JSON body, which leaves all other bytes as they are.
 *
 * <p>{@code routes/predicate/mask.py} is the same in Python.
 */
final class Mask {
  private enum Method { REPLACE, REMOVE, HASH }

  /** Bytes of a masked body for each one that a body may have: digests may make it much larger. */
  private static final int GROWTH = 4;
  private static final String ALGORITHM = "HmacSHA256";
  private static final String STRING = "string";
  private static final byte[] STARS = "\"***\"".getBytes(StandardCharsets.US_ASCII);
  private static final byte[] NOTHING = {};

  /** What paths ask of a value: of its fields, of its elements, and whether one ends at it. */
  private static final class Step {
    final Map<UTF8String, Step> fields = new HashMap<>();
    /** Steps to elements by index, from the end if it is negative; null: to each. */
    final Map<Integer, Step> elements = new HashMap<>();
    boolean isEnd;

    Step next(JsonNode step) {
      return step.isTextual()
          ? fields.computeIfAbsent(UTF8String.fromString(step.asText()), unused -> new Step())
          : elements.computeIfAbsent(step.isNull() ? null : step.intValue(), unused -> new Step());
    }

    boolean isFromEnd() {
      return elements.keySet().stream().anyMatch(index -> index != null && index < 0);
    }
  }

  private final List<Step> root = List.of(new Step());
  /** Names of fields of the document that paths end at, as the header of types spells them. */
  private final Set<String> typeNames = new HashSet<>();
  private final Method method;
  /** The key of digests; null for other methods. */
  private final SecretKeySpec key;

  /** Mask with the settings that {@code engine/router/plan/masks.py} gives. */
  Mask(JsonNode settings) {
    for (JsonNode path : settings.get("paths")) {
      Step current = root.get(0);
      for (JsonNode step : path) {
        current = current.next(step);
      }
      current.isEnd = true;
    }
    settings.get("types").forEach(name -> typeNames.add(name.asText()));
    method = Method.valueOf(settings.get("method").asText().toUpperCase(Locale.ROOT));
    byte[] secret = settings.path("secret").asText().getBytes(StandardCharsets.UTF_8);
    key = method == Method.HASH ? new SecretKeySpec(secret, ALGORITHM) : null;
  }

  /** The body with its values masked; null if it cannot be read as JSON, or becomes too large. */
  byte[] body(byte[] body, Bounds bounds) {
    if (body == null || body.length > bounds.size()) {
      return null;
    }
    try {
      return new Run(body, bounds).masked();
    } catch (JsonScanner.NotJsonException none) {
      return null;
    }
  }

  /** The types of a map's or a stream's values, as the header has them, that belong to the masked body. */
  String types(byte[] body, String types, boolean isMap, Bounds bounds) {
    if (types.isEmpty()) {
      return types;
    }
    String[] all = types.split(",", -1);
    int size = isMap ? 0 : size(body, bounds);
    StringJoiner left = new StringJoiner(",");
    for (int index = 0; index < all.length; index++) {
      String name = all[index].substring(0, Math.max(all[index].lastIndexOf('='), 0));
      boolean isMasked = isMap ? typeNames.contains(name) : index < size && isEnd(elements(root, index, size));
      if (!isMasked) {
        left.add(all[index]);
      } else if (method != Method.REMOVE) {
        left.add(isMap ? name + "=" + STRING : STRING);
      }
    }
    return left.toString();
  }

  /** Number of elements of a body that is an array; 0 for any other. */
  private static int size(byte[] body, Bounds bounds) {
    try {
      JsonScanner scanner = new JsonScanner(body, bounds.depth());
      scanner.skipBlanks();
      return scanner.peek() == '[' ? scanner.size() : 0;
    } catch (JsonScanner.NotJsonException none) {
      return 0;
    }
  }

  private static boolean isEnd(List<Step> steps) {
    for (Step step : steps) {
      if (step.isEnd) {
        return true;
      }
    }
    return false;
  }

  private static List<Step> field(List<Step> steps, UTF8String name) {
    List<Step> following = new ArrayList<>(steps.size());
    for (Step step : steps) {
      add(following, step.fields.get(name));
    }
    return following;
  }

  private static List<Step> elements(List<Step> steps, int index, int size) {
    List<Step> next = new ArrayList<>();
    for (Step step : steps) {
      add(next, step.elements.get(null));
      add(next, step.elements.get(index));
      add(next, step.elements.get(index - size));
    }
    return next;
  }

  private static void add(List<Step> steps, Step step) {
    if (step != null) {
      steps.add(step);
    }
  }

  /** The way through one body, in which what is masked is left out of the copy. */
  private final class Run {
    private final byte[] text;
    private final JsonScanner scanner;
    private final ByteArrayOutputStream copy;
    private int copied;
    private final int largest;
    private boolean isTooLarge;
    private Mac digest;

    Run(byte[] text, Bounds bounds) {
      this.text = text;
      scanner = new JsonScanner(text, bounds.depth());
      largest = GROWTH * bounds.size();
      copy = new ByteArrayOutputStream(text.length);
    }

    byte[] masked() throws JsonScanner.NotJsonException {
      scanner.skipBlanks();
      value(root);
      scanner.end();
      replace(text.length, text.length, NOTHING);
      return isTooLarge ? null : copy.toByteArray();
    }

    private void value(List<Step> steps) throws JsonScanner.NotJsonException {
      byte first = steps.isEmpty() ? 0 : scanner.peek();
      if (first == '{') {
        Members members = new Members();
        if (scanner.enter('}')) {
          do {
            int start = scanner.place();
            members.add(start, field(steps, scanner.name()));
          } while (scanner.isNext());
        }
        members.end();
        scanner.leave('}');
      } else if (first == '[') {
        Members members = new Members();
        int size = steps.stream().anyMatch(Step::isFromEnd) ? scanner.size() : 0;
        if (scanner.enter(']')) {
          int index = 0;
          do {
            members.add(scanner.place(), elements(steps, index++, size));
          } while (scanner.isNext());
        }
        members.end();
        scanner.leave(']');
      } else {
        scanner.skip();
      }
    }

    /** The fields of an object or the elements of an array, of which removed ones go with one comma each. */
    private final class Members {
      private static final int NONE = -1;

      /** End of the last one that stays. */
      private int lastEnd = NONE;
      /** Start of the first one that goes, of those after the last one that stays; and their end. */
      private int removed = NONE;
      private int removedEnd;

      /** Takes one that starts at a place; its value comes next. */
      void add(int start, List<Step> steps) throws JsonScanner.NotJsonException {
        int from = scanner.place();
        boolean isMasked = isEnd(steps);
        if (isMasked && method == Method.REMOVE) {
          scanner.skip();
          removed = removed == NONE ? start : removed;
          removedEnd = scanner.place();
          return;
        }
        if (removed != NONE) {
          replace(removed, start, NOTHING);
          removed = NONE;
        }
        if (isMasked) {
          scanner.skip();
          replace(from, scanner.place(), method == Method.HASH ? hash(from, scanner.place()) : STARS);
        } else {
          value(steps);
        }
        lastEnd = scanner.place();
      }

      /** Removes those behind the last one that stays. */
      void end() {
        if (removed != NONE) {
          replace(lastEnd == NONE ? removed : lastEnd, removedEnd, NOTHING);
        }
      }
    }

    private void replace(int start, int end, byte[] by) {
      isTooLarge |= copy.size() + start - copied + by.length > largest;
      if (!isTooLarge) {
        copy.write(text, copied, start - copied);
        copy.write(by, 0, by.length);
      }
      copied = end;
    }

    /** The digest of the value between two places, as a JSON string. */
    private byte[] hash(int start, int end) {
      byte[] value = text[start] == '"'
          ? scanner.characters(start + 1, end - 1, false).getBytes()
          : Arrays.copyOfRange(text, start, end);
      try {
        if (digest == null) {
          digest = Mac.getInstance(ALGORITHM);
          digest.init(key);
        }
      } catch (GeneralSecurityException error) {
        throw new IllegalStateException(error);
      }
      String digits = HexFormat.of().formatHex(digest.doFinal(value));
      return ('"' + digits + '"').getBytes(StandardCharsets.US_ASCII);
    }
  }
}
