package jmsbridge.serdes;

/**
 * Content of a body with a schema.
 *
 * @param type name of the schema's format in a registry
 * @param json the content as JSON text
 */
public record Document(String type, byte[] json) {
  /** Most objects and arrays within each other. */
  static final int DEPTH = 100;
  /** Most bytes of the JSON text. */
  static final int MOST_BYTES = 16 << 20;

  static UnfitValueException tooDeep() {
    return new UnfitValueException("the value is nested more than %d deep".formatted(DEPTH));
  }
}
