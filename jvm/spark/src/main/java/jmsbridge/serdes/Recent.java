package jmsbridge.serdes;

import java.util.LinkedHashMap;
import java.util.Map;

/** Map of the entries that were used last, at most so many; for one thread at a time. */
final class Recent<K, V> extends LinkedHashMap<K, V> {
  private static final long serialVersionUID = 1L;
  private final int most;

  Recent(int most) {
    super(16, 0.75f, true);
    this.most = most;
  }

  @Override
  protected boolean removeEldestEntry(Map.Entry<K, V> eldest) {
    return size() > most;
  }
}
