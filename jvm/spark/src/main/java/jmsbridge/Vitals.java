package jmsbridge;

import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryUsage;

/** Memory figures of this JVM, for Python in one call; Python may not call the methods of Java's internal classes. */
public final class Vitals {
  private Vitals() {}

  /** Used bytes of the heap, its maximum in bytes, and milliseconds of garbage collection, separated by spaces. */
  public static String read() {
    MemoryUsage heap = ManagementFactory.getMemoryMXBean().getHeapMemoryUsage();
    long collecting = 0;
    for (GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans()) {
      collecting += Math.max(collector.getCollectionTime(), 0);
    }
    return heap.getUsed() + " " + heap.getMax() + " " + collecting;
  }
}
