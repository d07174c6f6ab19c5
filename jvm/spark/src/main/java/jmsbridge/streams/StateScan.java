package jmsbridge.streams;

import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;

/**
 * Entries of a node that a range asks for, read from the store some at a time.
 *
 * <p>The store has a node's keys by length and, of one length, in the order of their bytes; then the windows of a key by
 * their starts. What is not asked for between two entries is passed over without being read.
 */
final class StateScan implements Iterator<Store.Entry> {
  /** Entries that are read at once. */
  static final int PAGE = 256;

  private final StatefulNode node;
  private final StateRange range;
  private final byte[] end;
  /** Entries before this key have been read or are not asked for. */
  private byte[] at;
  private List<Store.Entry> page = List.of();
  private int read;
  private Store.Entry next;

  /** Begins at an entry with a key, or at the first one if it is null. */
  StateScan(StatefulNode node, StateRange range, byte[] from) {
    this.node = node;
    this.range = range;
    byte[] first = range.only() == null ? keys().done() : keys().bytes(range.only()).done();
    end = Keys.behind(first);
    at = from != null && Arrays.compareUnsigned(from, first) > 0 ? from : first;
  }

  @Override
  public boolean hasNext() {
    while (next == null && readPage()) {
      Store.Entry entry = page.get(read++);
      if (Arrays.compareUnsigned(entry.key(), at) >= 0) {
        byte[] wanted = wantedFrom(entry.key());
        if (wanted == null) {
          next = entry;
          at = Keys.next(entry.key());
        } else {
          at = wanted;
        }
      }
    }
    return next != null;
  }

  @Override
  public Store.Entry next() {
    if (!hasNext()) {
      throw new NoSuchElementException();
    }
    Store.Entry found = next;
    next = null;
    return found;
  }

  /** Makes the page have an entry that has not been read; false if the store has no more. */
  private boolean readPage() {
    boolean isRead = read == page.size();
    if (isRead && Arrays.compareUnsigned(at, end) < 0) {
      page = node.states(at, end, PAGE);
      read = 0;
    }
    return read < page.size();
  }

  /** Null for an entry that is asked for; otherwise the key before which no other one is. */
  private byte[] wantedFrom(byte[] entry) {
    Keys.Reader reader = new Keys.Reader(entry);
    byte[] key = reader.bytes();
    byte[] first = range.first();
    if (first != null && Arrays.compareUnsigned(key, first) < 0) {
      byte[] least = Arrays.copyOf(first, key.length);
      byte[] there = keys().bytes(least).done();
      return key.length < first.length ? Keys.behind(there) : there;
    }
    if (range.isBehind(key)) {
      return keys().length(key.length + 1).done();
    }
    if (range.hasTimes()) {
      long start = reader.number();
      if (start < range.since()) {
        return keys().bytes(key).number(range.since()).done();
      }
      if (start > range.until()) {
        return Keys.behind(keys().bytes(key).done());
      }
    }
    return null;
  }

  private Keys keys() {
    return node.keys(StatefulNode.STATE);
  }
}
