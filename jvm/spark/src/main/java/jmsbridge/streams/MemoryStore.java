package jmsbridge.streams;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Store in memory, for tests of topologies. */
final class MemoryStore implements Store {
  private final TreeMap<byte[], byte[]> entries = new TreeMap<>(Arrays::compareUnsigned);

  @Override
  public byte[] get(byte[] key) {
    return entries.get(key);
  }

  @Override
  public void put(byte[] key, byte[] value) {
    entries.put(key, value);
  }

  @Override
  public void remove(byte[] key) {
    entries.remove(key);
  }

  @Override
  public List<Entry> range(byte[] from, byte[] to, int limit) {
    List<Entry> inRange = new ArrayList<>();
    for (Map.Entry<byte[], byte[]> entry : entries.subMap(from, to).entrySet()) {
      if (inRange.size() == limit) {
        break;
      }
      inRange.add(new Entry(entry.getKey(), entry.getValue()));
    }
    return inRange;
  }
}
