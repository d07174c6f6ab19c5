package jmsbridge.figures;

import java.util.Set;
import java.util.concurrent.ConcurrentSkipListSet;

/**
 * Readiness of the query to route a new journal record at once: Spark has compiled the query's code, and its tasks read
 * the journal. State is static for the reason given at {@link RowCounters}.
 */
public final class Readiness {
  private static final Set<Integer> READING = new ConcurrentSkipListSet<>();
  private static volatile boolean looked;

  private Readiness() {}

  /** Forgets the state of the query before. */
  static void begin() {
    READING.clear();
    looked = false;
  }

  /** Called when a task of real-time mode asks for records of the partition. */
  public static void reads(int partition) {
    READING.add(partition);
  }

  /** Called when a task of batch mode has read all of its batch, or there was nothing to read. */
  public static void looked() {
    looked = true;
  }

  /** The figures since {@link #begin} as JSON members. */
  static String read() {
    return "\"reading\":" + READING + ",\"looked\":" + looked;
  }
}
