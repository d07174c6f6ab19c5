package jmsbridge.serdes;

/** Check of bodies against a schema that a route names. */
public interface BodyCheck {
  /** The reason why a body, which is there and can be read, does not fit; null if it does. */
  String fault(byte[] body, BodyOrigin origin);
}
