package jmsbridge.streams;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/** Look into the state of a topology, as its last committed batch left it, whether it runs or not. */
public final class StateQuery {
  private StateQuery() {}

  /**
   * The state of a node, as lines of JSON, of the shares below {@code shares}.
   *
   * @param folder where the state is kept, as a URI of Hadoop
   * @param version number of the batch after the last committed one
   * @param key bytes of the key; null: all keys
   * @throws IllegalArgumentException the node keeps no state that can be shown
   */
  public static byte[] state(
      Program program, String folder, int shares, long version, String node, byte[] key, int limit) throws IOException {
    List<byte[]> rows = new ArrayList<>();
    for (int share = 0; share < shares && rows.size() < limit; share++) {
      RocksStore store = new RocksStore(folder, share);
      try {
        store.look(version);
        rows.addAll(new Task(program.copy(), store, null, null).state(node, key, limit - rows.size()));
        store.rollBack();
      } finally {
        store.close();
      }
    }
    return lines(rows);
  }

  static byte[] lines(List<byte[]> rows) {
    ByteArrayOutputStream lines = new ByteArrayOutputStream();
    for (byte[] each : rows) {
      lines.writeBytes(each);
      lines.write('\n');
    }
    return lines.toByteArray();
  }
}
