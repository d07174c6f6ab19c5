package jmsbridge.kafka;

import java.util.Set;
import java.util.concurrent.ConcurrentSkipListSet;

/**
 * Whether a record that comes into the journal now is routed at once: Spark has compiled the query's code, and its tasks
 * read. State is static for the reason given at {@link jmsbridge.Tally}.
 */
public final class Readiness {
  private static final Set<Integer> READING = new ConcurrentSkipListSet<>();
  private static volatile boolean looked;

  private Readiness() {}

  /** Forgets what the query before has told. */
  public static void begin() {
    READING.clear();
    looked = false;
  }

  /** A task of real-time mode asks for records of that partition. */
  static void reads(int partition) {
    READING.add(partition);
  }

  /** A task of batch mode has read all of its batch, or there was nothing to read. */
  static void looked() {
    looked = true;
  }

  /** The figures since {@link #begin} as JSON members. */
  public static String read() {
    return "\"reading\":" + READING + ",\"looked\":" + looked;
  }
}
