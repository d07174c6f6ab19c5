package jmsbridge.serdes;

import java.util.LinkedHashMap;
import java.util.Map;

/** Map of the entries that were used last, at most so many; for one thread at a time. */
final class Recent<K, V> extends LinkedHashMap<K, V> {
  private static final long serialVersionUID = 1L;
  private final int capacity;

  Recent(int capacity) {
    super(16, 0.75f, true);
    this.capacity = capacity;
  }

  @Override
  protected boolean removeEldestEntry(Map.Entry<K, V> eldest) {
    return size() > capacity;
  }
}
