package jmsbridge.predicate;

/** Result of a condition in three-valued logic. */
enum Truth {
  FALSE, TRUE, UNKNOWN;

  static Truth of(boolean truth) {
    return truth ? TRUE : FALSE;
  }

  Truth not() {
    return this == UNKNOWN ? UNKNOWN : of(this == FALSE);
  }
}
