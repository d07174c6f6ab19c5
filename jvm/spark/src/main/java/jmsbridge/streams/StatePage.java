package jmsbridge.streams;

import java.io.Serializable;

/**
 * Some rows of one share.
 *
 * @param lines the rows as JSON objects, each with its key and a line end
 * @param rows number of the rows
 * @param next key of the entry with which the next rows begin; null: there are no more
 */
record StatePage(byte[] lines, int rows, byte[] next) implements Serializable {
  /**
   * Question for rows of one share.
   *
   * @param node name of the node
   * @param from key of the entry with which the rows begin; null: the first one
   * @param most greatest number of rows
   * @param mostBytes length of the lines from which on no row is added
   */
  record Question(String node, StateRange range, byte[] from, int most, int mostBytes) implements Serializable {}
}
