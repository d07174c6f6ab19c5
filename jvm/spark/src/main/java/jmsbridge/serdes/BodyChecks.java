package jmsbridge.serdes;

/** Makers of checks of bodies. */
public final class BodyChecks {
  private BodyChecks() {}

  /**
   * The check of bodies that have to fit a schema.
   *
   * @param documents reader of bodies with a schema; null: no body has one that is known
   */
  public static BodyCheck of(NamedSchema schema, Documents documents) {
    return schema.type().equals("JSON")
        ? new JsonSchemas(schema.schema(), schema.name(), documents)
        : new WriterCheck(schema, documents);
  }
}
