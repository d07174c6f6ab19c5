package jmsbridge.streams;

import org.apache.spark.sql.catalyst.InternalRow;

/** Table whose present value for a key can be looked up within the task. */
interface TableState {
  /** The fields under the key; null: none. */
  InternalRow lookUp(byte[] key);
}
