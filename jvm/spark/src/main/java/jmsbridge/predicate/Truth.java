package jmsbridge.predicate;

/** The three values of a condition. */
enum Truth {
  FALSE, TRUE, UNKNOWN;

  static Truth of(boolean truth) {
    return truth ? TRUE : FALSE;
  }

  Truth not() {
    return this == UNKNOWN ? UNKNOWN : of(this == FALSE);
  }
}
