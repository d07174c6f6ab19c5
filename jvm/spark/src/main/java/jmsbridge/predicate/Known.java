package jmsbridge.predicate;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Supplier;

/** Values by name that were used recently: each task that Spark starts looks up what it needs again. */
final class Known<V> {
  private static final int KEPT = 256;

  private final Map<String, V> values = new LinkedHashMap<>(16, 0.75f, true) {
    private static final long serialVersionUID = 1L;

    @Override
    protected boolean removeEldestEntry(Map.Entry<String, V> eldest) {
      return size() > KEPT;
    }
  };

  /** The value of that name, made if it does not exist yet. */
  synchronized V put(String name, Supplier<V> made) {
    return values.computeIfAbsent(name, unused -> made.get());
  }

  /** Gives a name another value. */
  synchronized void replace(String name, V value) {
    values.put(name, value);
  }

  /** The value of that name; null if there is none. */
  synchronized V get(String name) {
    return values.get(name);
  }
}
