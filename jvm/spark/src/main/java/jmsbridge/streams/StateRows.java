package jmsbridge.streams;

import java.io.ByteArrayOutputStream;
import java.util.HexFormat;

/** Rows of a node's state as JSON objects, share after share, which are taken some at a time. */
public final class StateRows {
  /** Shares whose state is open. */
  interface Shares {
    int count();

    StatePage read(int share, StatePage.Question question);
  }

  private final Shares shares;
  private final String node;
  private final StateRange range;
  private int share;
  private byte[] from;

  /** Begins at a place, as {@link #place} gives it, or with the first row if that is empty. */
  StateRows(Shares shares, String node, StateRange range, String place) {
    this.shares = shares;
    this.node = node;
    this.range = range;
    if (!place.isEmpty()) {
      int dot = place.indexOf('.');
      share = Integer.parseUnsignedInt(place.substring(0, dot));
      from = dot + 1 == place.length() ? null : HexFormat.of().parseHex(place.substring(dot + 1));
    }
  }

  /** The next rows as lines, {@code mostRows} of them at most, and no more once they have so many bytes. */
  public byte[] take(int mostRows, int mostBytes) {
    ByteArrayOutputStream lines = new ByteArrayOutputStream();
    for (int rows = 0; share < shares.count() && rows < mostRows && lines.size() < mostBytes;) {
      StatePage page = shares.read(
          share, new StatePage.Question(node, range, from, mostRows - rows, mostBytes - lines.size()));
      lines.writeBytes(page.lines());
      rows += page.rows();
      from = page.next();
      share += from == null ? 1 : 0;
    }
    return lines.toByteArray();
  }

  /** Place of the rows that were not taken: a share, a dot and a key in hexadecimal digits. Empty: there are no more. */
  public String place() {
    return share == shares.count() ? "" : share + "." + (from == null ? "" : HexFormat.of().formatHex(from));
  }
}
