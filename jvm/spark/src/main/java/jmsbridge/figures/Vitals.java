package jmsbridge.figures;

import java.io.Serializable;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryUsage;

/**
 * Memory figures of a JVM.
 *
 * @param used bytes of the heap that objects take
 * @param committed bytes of the heap that the JVM has from the system
 * @param max bytes that the heap may have
 * @param collectingMs milliseconds of garbage collection
 */
public record Vitals(long used, long committed, long max, long collectingMs) implements Serializable {
  /** The figures of this JVM. */
  public static Vitals now() {
    MemoryUsage heap = ManagementFactory.getMemoryMXBean().getHeapMemoryUsage();
    long collecting = 0;
    for (GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans()) {
      collecting += Math.max(collector.getCollectionTime(), 0);
    }
    return new Vitals(heap.getUsed(), heap.getCommitted(), heap.getMax(), collecting);
  }

  /** The figures of this JVM, separated by spaces, for Python in one call. */
  public static String read() {
    return now().toString();
  }

  @Override
  public String toString() {
    return used + " " + committed + " " + max + " " + collectingMs;
  }
}
