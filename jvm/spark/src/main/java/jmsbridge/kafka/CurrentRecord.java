package jmsbridge.kafka;

/**
 * The record that the task of the calling thread has read last, for the sink of the same task.
 *
 * <p>Spark's generated code passes a row through a plan of one stage before it reads the next one, in one thread. The
 * sink checks that: the position in its row is that of the record.
 */
final class CurrentRecord {
  private static final ThreadLocal<RecordRow> READ = new ThreadLocal<>();

  private CurrentRecord() {}

  static void set(RecordRow row) {
    READ.set(row);
  }

  /**
   * The row of the record at this position.
   *
   * @throws IllegalStateException the calling thread has read another record last, or none
   */
  static RecordRow at(int partition, long offset) {
    RecordRow row = READ.get();
    if (row == null || row.record().offset() != offset || row.record().partition() != partition) {
      String position = row == null ? "none" : row.record().partition() + ":" + row.record().offset();
      throw new IllegalStateException("a row of the journal record at " + partition + ":" + offset
          + " arrives when the record read last is " + position + ": the plan keeps rows back");
    }
    return row;
  }
}
