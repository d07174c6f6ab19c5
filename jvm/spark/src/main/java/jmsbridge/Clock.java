package jmsbridge;

import org.apache.spark.sql.api.java.UDF0;

/** Column function: the time in epoch milliseconds at each row; current_timestamp stands still within an interval. */
public final class Clock implements UDF0<Long> {
  @Override
  public Long call() {
    return System.currentTimeMillis();
  }
}
