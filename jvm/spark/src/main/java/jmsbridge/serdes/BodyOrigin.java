package jmsbridge.serdes;

/**
 * What a message says of its body, by which the schema of a bare value is known.
 *
 * @param source name of the source that received the message; null: none did
 * @param kind kind of the body, as the header {@code jmsbridge.body} has it
 */
public record BodyOrigin(String source, String kind) {
  /** Origin of bodies whose message says nothing of them. */
  public static final BodyOrigin NONE = new BodyOrigin(null, "");
}
