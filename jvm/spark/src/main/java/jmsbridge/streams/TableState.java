package jmsbridge.streams;

import org.apache.spark.sql.catalyst.InternalRow;

/** Table whose present value for a key can be looked up within the task. */
interface TableState {
  /** The fields under the key; null: none. */
  InternalRow lookUp(byte[] key);

  /** The fields under the key as of a time, as far as the table knows; those of the present if the record has no time. */
  default InternalRow lookUp(byte[] key, long time) {
    return lookUp(key);
  }

  /** The time of the row under the key, in milliseconds since 1970; the smallest number if there is none. */
  long timeOf(byte[] key);
}
