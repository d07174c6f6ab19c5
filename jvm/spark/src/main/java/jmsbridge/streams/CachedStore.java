package jmsbridge.streams;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import jmsbridge.streams.CachedSlots.Slot;

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
  /** Part of its bytes that a cache keeps when it makes room. */
  private static final double KEPT_PART = 0.75;
  private static final byte[] FIRST = {};
  private static final byte[] LAST = {-1, -1, -1, -1, -1, -1};

  private final RocksStore rocks;
  private final long mostBytes;
  private final CachedSlots slots = new CachedSlots();
  /** The slots in the order of their keys, which finds one much more slowly; null: no range was read yet. */
  private TreeMap<byte[], Slot> sorted;
  /** Changed slots, in the order of the changes. */
  private final List<Slot> changed = new ArrayList<>();
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
    };
  }

  /** Reads all entries, or none if they do not fit. */
  private void fill() {
    // A start does not read entries of which it keeps none.
    if (Math.max(rocks.tableBytes(), rocks.estimatedEntries() * CachedSlots.SLOT_BYTES) > mostBytes) {
      return;
    }
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
    Slot slot = find(key);
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
    Slot slot = find(key);
    if (slot == null) {
      slot = add(key, value, !isWhole);
    } else {
      bytes += value.length - (slot.value == null ? 0 : slot.value.length);
      slot.value = value;
    }
    change(slot);
  }

  @Override
  public synchronized void remove(byte[] key) {
    Slot slot = find(key);
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
      change(slot);
    } else {
      slot.isChanged = false;
      forget(slot);
    }
  }

  @Override
  public synchronized List<Entry> range(byte[] from, byte[] to, int limit) {
    if (isWhole) {
      return merged(List.of(), between(from, to), limit);
    }
    List<Entry> found = new ArrayList<>();
    byte[] at = from;
    while (found.size() < limit) {
      int wanted = limit - found.size();
      List<Entry> stored = rocks.range(at, to, wanted);
      // What is behind the last entry that is stored comes with the next ones.
      boolean isAll = stored.size() < wanted;
      byte[] end = isAll ? to : Keys.next(stored.get(stored.size() - 1).key());
      found.addAll(merged(stored, between(at, end), wanted));
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

  private Slot find(byte[] key) {
    return slots.find(key);
  }

  /** The slots from a key (included) to a key (excluded). */
  private NavigableMap<byte[], Slot> between(byte[] from, byte[] to) {
    if (sorted == null) {
      sorted = new TreeMap<>(Arrays::compareUnsigned);
      slots.forEach(each -> sorted.put(each.key, each));
    }
    return sorted.subMap(from, true, to, false);
  }

  private Slot add(byte[] key, byte[] value, boolean isStored) {
    Slot slot = slots.add(key);
    slot.value = value;
    slot.isStored = isStored;
    if (sorted != null) {
      sorted.put(key, slot);
    }
    bytes += size(key, value);
    return slot;
  }

  /** Drops a slot whose value is removed. */
  private void forget(Slot slot) {
    slots.remove(slot);
    forgotten(slot);
  }

  private void forgotten(Slot slot) {
    if (sorted != null) {
      sorted.remove(slot.key);
    }
    bytes -= size(slot.key, slot.value);
  }

  private static long size(byte[] key, byte[] value) {
    return key.length + CachedSlots.SLOT_BYTES + (value == null ? 0 : value.length);
  }

  private void change(Slot slot) {
    if (!slot.isChanged) {
      slot.isChanged = true;
      changed.add(slot);
    }
    if (changed.size() >= MOST_CHANGES) {
      write();
    }
    shrink();
  }

  /** Makes room if the cache is full: entries that were not asked for lately go. */
  private void shrink() {
    if (bytes > mostBytes) {
      write();
      isWhole = false;
      while (bytes > mostBytes * KEPT_PART) {
        slots.evict(this::forgotten);
      }
    }
  }

  private synchronized void write() {
    // One that came and went is not changed. RocksDB takes keys in their order faster.
    changed.removeIf(slot -> !slot.isChanged);
    changed.sort((one, other) -> Arrays.compareUnsigned(one.key, other.key));
    rocks.write(changed.stream().map(slot -> new Entry(slot.key, slot.value)).toList());
    for (Slot slot : changed) {
      slot.isChanged = false;
      if (slot.value == null) {
        forget(slot);
      } else {
        slot.isStored = true;
      }
    }
    changed.clear();
  }

  private void clear() {
    slots.clear();
    if (sorted != null) {
      sorted.clear();
    }
    changed.clear();
    bytes = 0;
    isWhole = false;
  }
}
