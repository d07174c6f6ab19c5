package jmsbridge.serdes;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;

/**
 * Client of an OpenID Connect server, which gives it access tokens; its text shows no secrets.
 *
 * @param issuer URL of the server; null: the endpoint is known
 * @param endpoint URL of its token endpoint; null: the issuer is asked for it
 * @param clientId id of the client
 * @param secret secret of the client
 * @param scope scopes of the tokens; null: those that the server gives by itself
 * @param authority file of certificates (PEM) to trust; null: those of Java
 * @param keys text before the keys of the configuration, for errors
 */
record TokenLogin(
    String issuer, String endpoint, String clientId, String secret, String scope, String authority, String keys)
    implements Serializable {
  /** Reads what Python has written; null if there is none. */
  static TokenLogin of(JsonNode said) {
    return said.isMissingNode() || said.isNull()
        ? null
        : new TokenLogin(text(said, "issuer"), text(said, "endpoint"), text(said, "clientId"), text(said, "secret"),
            text(said, "scope"), text(said, "authority"), text(said, "keys"));
  }

  static String text(JsonNode said, String name) {
    return said.path(name).textValue();
  }

  @Override
  public String toString() {
    return "tokens of " + (issuer == null ? endpoint : issuer);
  }
}
