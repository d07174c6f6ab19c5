package jmsbridge.streams;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;

/**
 * Cache in memory of a {@link RocksStore}, which gets changes at a commit or when the cache is full.
 *
 * <p>As long as all entries fit, none is looked up in RocksDB, and one that comes and goes between two commits is never
 * written there.
 *
 * <p>One thread changes the entries; any other may read them by {@link #live}, also while a commit writes them. A lock
 * is held for one operation, so that neither waits longer than for {@link StateScan#PAGE} entries of the other.
 */
final class CachedStore implements Store {
  /** Changes that are written at once: so few take some milliseconds, which is what a record may wait for. */
  private static final int MOST_CHANGES = 10_000;
  /** Bytes that the JVM takes for an entry beside those of its key and its value. */
  private static final int ENTRY_BYTES = 120;
  private static final byte[] FIRST = {};
  private static final byte[] LAST = {-1, -1, -1, -1, -1, -1};

  private static final class Slot {
    /** Null: removed. */
    private byte[] value;
    /** Whether the RocksDB store has another value. */
    private boolean isChanged;
    /** Whether the RocksDB store may have an entry. */
    private boolean isStored;
  }

  private final RocksStore rocks;
  private final long mostBytes;
  private final TreeMap<byte[], Slot> slots = new TreeMap<>(Arrays::compareUnsigned);
  /** Keys of changed slots, in the order of the changes. */
  private final List<byte[]> changed = new ArrayList<>();
  private long bytes;
  /** Whether the slots are all there is. */
  private boolean isWhole;
  private long loaded = -1;
  /** Whether the changes since the load are committed. */
  private boolean isCommitted;
  /** Whether other threads may read: not while a version is loaded, nor after a failure. */
  private volatile boolean isOpen;

  /** Creates the cache of a store, which takes {@code mostBytes} of memory. */
  CachedStore(RocksStore rocks, long mostBytes) {
    this.rocks = rocks;
    this.mostBytes = mostBytes;
  }

  /**
   * Loads a version, which counts the commits since the beginning; 0 is the empty store.
   *
   * @return whether this store has committed the version itself, just before, so that nodes still hold what belongs to it
   */
  boolean load(long wanted) {
    boolean isOwn = isCommitted && wanted == loaded + 1;
    // Who reads does not wait for a load, which may take long.
    isOpen &= isOwn;
    load(wanted, isOwn);
    isOpen = true;
    return isOwn;
  }

  private synchronized void load(long wanted, boolean isOwn) {
    rocks.load(wanted);
    loaded = wanted;
    isCommitted = false;
    if (!isOwn) {
      clear();
      fill();
    }
  }

  /** The store for other threads, which only read; IllegalStateException from each method while it is not open. */
  Store live() {
    return new Store() {
      @Override
      public byte[] get(byte[] key) {
        List<Entry> found = range(key, Keys.next(key), 1);
        return found.isEmpty() ? null : found.get(0).value();
      }

      @Override
      public List<Entry> range(byte[] from, byte[] to, int limit) {
        if (isOpen) {
          synchronized (CachedStore.this) {
            if (isOpen) {
              return CachedStore.this.range(from, to, limit);
            }
          }
        }
        throw new IllegalStateException("the share is being loaded");
      }

      @Override
      public void put(byte[] key, byte[] value) {
        throw new UnsupportedOperationException();
      }

      @Override
      public void remove(byte[] key) {
        throw new UnsupportedOperationException();
      }
    };
  }

  /** Reads all entries, or none if they do not fit. */
  private void fill() {
    isWhole = true;
    List<Entry> page = rocks.range(FIRST, LAST, PAGE);
    while (!page.isEmpty()) {
      page.forEach(each -> add(each.key(), each.value(), true));
      if (bytes > mostBytes) {
        clear();
        return;
      }
      page = rocks.range(Keys.next(page.get(page.size() - 1).key()), LAST, PAGE);
    }
  }

  /** Makes the changes since the load a version, the next number. */
  void commit() {
    write();
    // Without the lock: RocksDB can be read meanwhile, and files of the checkpoint may be written slowly.
    rocks.commit();
    isCommitted = true;
  }

  /** Forgets the changes since the load. */
  synchronized void rollBack() {
    isOpen = false;
    clear();
    rocks.rollBack();
  }

  synchronized void close() {
    isOpen = false;
    rocks.close();
  }

  @Override
  public synchronized byte[] get(byte[] key) {
    Slot slot = slots.get(key);
    if (slot != null) {
      return slot.value;
    }
    if (isWhole) {
      return null;
    }
    byte[] value = rocks.get(key);
    if (value != null) {
      add(key, value, true);
      shrink();
    }
    return value;
  }

  @Override
  public synchronized void put(byte[] key, byte[] value) {
    Slot slot = slots.get(key);
    if (slot == null) {
      slot = add(key, value, !isWhole);
    } else {
      bytes += value.length - (slot.value == null ? 0 : slot.value.length);
      slot.value = value;
    }
    change(key, slot);
  }

  @Override
  public synchronized void remove(byte[] key) {
    Slot slot = slots.get(key);
    if (slot == null) {
      if (isWhole) {
        return;
      }
      slot = add(key, null, true);
    } else if (slot.value != null) {
      bytes -= slot.value.length;
      slot.value = null;
    }
    if (slot.isStored) {
      change(key, slot);
    } else {
      slots.remove(key);
      bytes -= size(key, null);
    }
  }

  @Override
  public synchronized List<Entry> range(byte[] from, byte[] to, int limit) {
    if (isWhole) {
      return merged(List.of(), slots.subMap(from, true, to, false), limit);
    }
    List<Entry> found = new ArrayList<>();
    byte[] at = from;
    while (found.size() < limit) {
      int wanted = limit - found.size();
      List<Entry> stored = rocks.range(at, to, wanted);
      // What is behind the last entry that is stored comes with the next ones.
      boolean isAll = stored.size() < wanted;
      byte[] end = isAll ? to : Keys.next(stored.get(stored.size() - 1).key());
      found.addAll(merged(stored, slots.subMap(at, true, end, false), wanted));
      if (isAll) {
        break;
      }
      at = end;
    }
    return found;
  }

  /** Entries of both in the order of their keys; a slot replaces what is stored. */
  private static List<Entry> merged(List<Entry> stored, NavigableMap<byte[], Slot> near, int limit) {
    List<Entry> found = new ArrayList<>();
    int at = 0;
    for (Map.Entry<byte[], Slot> each : near.entrySet()) {
      for (; at < stored.size(); at++) {
        int order = Arrays.compareUnsigned(stored.get(at).key(), each.getKey());
        if (order > 0) {
          break;
        }
        if (order < 0 && found.size() < limit) {
          found.add(stored.get(at));
        }
      }
      if (found.size() >= limit) {
        return found;
      }
      if (each.getValue().value != null) {
        found.add(new Entry(each.getKey(), each.getValue().value));
      }
    }
    for (; at < stored.size() && found.size() < limit; at++) {
      found.add(stored.get(at));
    }
    return found;
  }

  private Slot add(byte[] key, byte[] value, boolean isStored) {
    Slot slot = new Slot();
    slot.value = value;
    slot.isStored = isStored;
    slots.put(key, slot);
    bytes += size(key, value);
    return slot;
  }

  private static long size(byte[] key, byte[] value) {
    return key.length + ENTRY_BYTES + (value == null ? 0 : value.length);
  }

  private void change(byte[] key, Slot slot) {
    if (!slot.isChanged) {
      slot.isChanged = true;
      changed.add(key);
    }
    if (changed.size() >= MOST_CHANGES) {
      write();
    }
    shrink();
  }

  private void shrink() {
    if (bytes > mostBytes) {
      write();
      clear();
    }
  }

  private synchronized void write() {
    for (byte[] key : changed) {
      Slot slot = slots.get(key);
      // Gone if it came and went.
      if (slot != null && slot.isChanged) {
        if (slot.value == null) {
          rocks.remove(key);
          slots.remove(key);
          bytes -= size(key, null);
        } else {
          rocks.put(key, slot.value);
          slot.isChanged = false;
          slot.isStored = true;
        }
      }
    }
    changed.clear();
  }

  private void clear() {
    slots.clear();
    changed.clear();
    bytes = 0;
    isWhole = false;
  }
}
