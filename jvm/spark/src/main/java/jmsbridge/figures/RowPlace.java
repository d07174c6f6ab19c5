package jmsbridge.figures;

/**
 * Place of a row: the journal position of its message, and which copy of the message it is, from 0.
 *
 * @param partition journal partition, with the offset the position
 */
public record RowPlace(int partition, long offset, int copy) {}
