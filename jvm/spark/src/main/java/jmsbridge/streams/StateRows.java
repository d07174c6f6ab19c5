package jmsbridge.streams;

import java.io.ByteArrayOutputStream;
import java.util.Collections;
import java.util.Iterator;

/** Rows of a node's state as JSON objects, which are taken some at a time. */
public final class StateRows {
  private final Iterator<Task> tasks;
  private final String node;
  private final StateRange range;
  private Iterator<byte[]> rows = Collections.emptyIterator();

  /** Creates the rows of one task after the other. */
  StateRows(Iterator<Task> tasks, String node, StateRange range) {
    this.tasks = tasks;
    this.node = node;
    this.range = range;
  }

  /** The next rows, {@code most} of them at most, as lines; empty: there are no more. */
  public byte[] take(int most) {
    ByteArrayOutputStream lines = new ByteArrayOutputStream();
    for (int taken = 0; taken < most && hasNext(); taken++) {
      lines.writeBytes(rows.next());
      lines.write('\n');
    }
    return lines.toByteArray();
  }

  private boolean hasNext() {
    while (!rows.hasNext() && tasks.hasNext()) {
      rows = tasks.next().state(node, range);
    }
    return rows.hasNext();
  }
}
