package jmsbridge.predicate;

/**
 * Finder of the rules that may accept a record, by one thing that each of them requires.
 *
 * <p>A rule which an index does not find for a record does not accept it; one that it finds may still refuse it.
 */
interface Index {
  /** The first rule before `before` that this index finds and that accepts the record; `before` if there is none. */
  int first(Fields fields, int before, RuleList rules);

  /** The lowest number of its rules. */
  int lowest();

  /** Whether a part that it looks at is of the body. */
  boolean readsBody();
}
