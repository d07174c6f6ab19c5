package jmsbridge.kafka;

/** Exceptions for what cannot be done with the record that a task reads, or that it does not have. */
final class ReadOnly {
  private ReadOnly() {}

  static RuntimeException kept() {
    return new UnsupportedOperationException(
        "a journal record cannot be kept: the plan collects rows, but each has to be written before the next is read");
  }

  static RuntimeException changed() {
    return new UnsupportedOperationException("a journal record cannot be changed");
  }

  static RuntimeException mistyped(int field) {
    return new UnsupportedOperationException("field " + field + " of a journal record has another type");
  }
}
