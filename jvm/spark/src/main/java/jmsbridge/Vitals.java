package jmsbridge;

import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryUsage;

/** How this JVM is, in a form that Python gets in one call: it may not look into the JVM's own classes. */
public final class Vitals {
  private Vitals() {}

  /** Bytes of the heap in use, bytes it may have, milliseconds spent on collecting garbage; with spaces between. */
  public static String read() {
    MemoryUsage heap = ManagementFactory.getMemoryMXBean().getHeapMemoryUsage();
    long collecting = 0;
    for (GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans()) {
      collecting += Math.max(collector.getCollectionTime(), 0);
    }
    return heap.getUsed() + " " + heap.getMax() + " " + collecting;
  }
}
