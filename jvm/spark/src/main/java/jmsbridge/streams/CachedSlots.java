package jmsbridge.streams;

import java.util.Arrays;
import java.util.function.Consumer;

/**
 * Table of a cache's slots by key. Slots are chained to each other: in Java's own map, each would need a second object of
 * 32 bytes, and each search would make one.
 */
final class CachedSlots {
  /** Bytes that the JVM takes for a slot beside those of its key and its value. */
  static final int SLOT_BYTES = 80;
  private static final int FEWEST = 1024;

  /** Entry of the cache. */
  static final class Slot {
    final byte[] key;
    private final int hash;
    private Slot next;
    /** Null: removed. */
    byte[] value;
    /** Whether the RocksDB store has another value. */
    boolean isChanged;
    /** Whether the RocksDB store may have an entry. */
    boolean isStored;
    /** Whether it was asked for since {@link #evict} passed it. */
    private boolean isUsed;

    private Slot(byte[] key, int hash) {
      this.key = key;
      this.hash = hash;
    }
  }

  private Slot[] chains = new Slot[FEWEST];
  private int size;
  /** Chain at which the next eviction goes on. */
  private int hand;

  private static int hash(byte[] key) {
    int hash = Arrays.hashCode(key);
    return hash ^ hash >>> 16;
  }

  /** The slot of a key; null: none. */
  Slot find(byte[] key) {
    int hash = hash(key);
    for (Slot each = chains[hash & chains.length - 1]; each != null; each = each.next) {
      if (each.hash == hash && Arrays.equals(each.key, key)) {
        each.isUsed = true;
        return each;
      }
    }
    return null;
  }

  /** Adds the slot of a key that has none. */
  Slot add(byte[] key) {
    if (size >= chains.length) {
      grow();
    }
    Slot slot = new Slot(key, hash(key));
    link(slot);
    size++;
    return slot;
  }

  private void link(Slot slot) {
    int at = slot.hash & chains.length - 1;
    slot.next = chains[at];
    chains[at] = slot;
  }

  private void grow() {
    Slot[] before = chains;
    chains = new Slot[2 * before.length];
    hand = 0;
    for (Slot first : before) {
      for (Slot each = first; each != null; ) {
        Slot next = each.next;
        link(each);
        each = next;
      }
    }
  }

  /** Removes a slot that is there. */
  void remove(Slot slot) {
    int at = slot.hash & chains.length - 1;
    if (chains[at] == slot) {
      chains[at] = slot.next;
    } else {
      Slot before = chains[at];
      while (before.next != slot) {
        before = before.next;
      }
      before.next = slot.next;
    }
    size--;
  }

  /** Removes some slots that were not asked for since the last time, and says which. */
  void evict(Consumer<Slot> evicted) {
    for (Slot each = chains[hand]; each != null; each = each.next) {
      if (each.isUsed) {
        each.isUsed = false;
      } else {
        remove(each);
        evicted.accept(each);
      }
    }
    hand = hand + 1 & chains.length - 1;
  }

  void forEach(Consumer<Slot> action) {
    for (Slot first : chains) {
      for (Slot each = first; each != null; each = each.next) {
        action.accept(each);
      }
    }
  }

  void clear() {
    Arrays.fill(chains, null);
    size = 0;
  }
}
