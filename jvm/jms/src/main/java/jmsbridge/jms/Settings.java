package jmsbridge.jms;

import java.nio.ByteBuffer;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The settings of one source or sink, as the first frame has them: names and values by turns. */
public final class Settings {
  private final Map<String, String> values = new LinkedHashMap<>();

  Settings(ByteBuffer content) {
    List<String> texts = Texts.read(content);
    for (int n = 0; n + 1 < texts.size(); n += 2) {
      values.put(texts.get(n), texts.get(n + 1));
    }
  }

  /** A value; null if it is not set. */
  public String get(String name) {
    return values.get(name);
  }

  /** A number; 0 if it is not set. */
  public long number(String name) {
    String text = values.get(name);
    return text == null ? 0 : Long.parseLong(text);
  }

  /** Whether a flag is set. */
  public boolean is(String name) {
    return "true".equals(values.get(name));
  }

  /** The values whose names begin alike, by the rest of their names. */
  public Map<String, String> all(String prefix) {
    Map<String, String> found = new LinkedHashMap<>();
    values.forEach(
        (name, value) -> {
          if (name.startsWith(prefix)) {
            found.put(name.substring(prefix.length()), value);
          }
        });
    return found;
  }
}
