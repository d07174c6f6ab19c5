package jmsbridge.serdes;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.Serializable;
import java.net.http.HttpClient;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.StreamSupport;

/**
 * Address and login of a schema registry; its text shows no secrets.
 *
 * @param urls addresses of the registry's servers, tried in turn
 * @param headers headers of each request by name, the login among them if it never changes
 * @param tokens the login by tokens that change; null: none
 * @param authority file of certificates (PEM) to trust; null: those of Java
 * @param certificate file of the own certificate (PEM); null: none
 * @param key file of its private key (PEM)
 * @param timeout for a request
 * @param outage how long the registry may be away before a topology ends
 * @param copies folder for copies of its schemas; null: none are kept
 */
public record RegistrySettings(
    List<String> urls, Map<String, String> headers, TokenLogin tokens, String authority, String certificate, String key,
    Duration timeout, Duration outage, String copies) implements Serializable {
  /** Reads the JSON that Python has written. */
  public static RegistrySettings of(String text) throws JsonProcessingException {
    return of(new ObjectMapper().readTree(text));
  }

  /** Reads what Python has written. */
  public static RegistrySettings of(JsonNode said) {
    List<String> urls = StreamSupport.stream(said.path("urls").spliterator(), false).map(JsonNode::asText).toList();
    Map<String, String> headers = new LinkedHashMap<>();
    said.path("headers").properties().forEach(each -> headers.put(each.getKey(), each.getValue().asText()));
    return new RegistrySettings(urls, Map.copyOf(headers), TokenLogin.of(said.path("tokens")),
        TokenLogin.text(said, "authority"), TokenLogin.text(said, "certificate"), TokenLogin.text(said, "key"),
        Duration.ofMillis(said.path("timeoutMs").asLong()), Duration.ofMillis(said.path("outageMs").asLong()),
        TokenLogin.text(said, "copies"));
  }

  HttpClient client() {
    HttpClient.Builder client =
        HttpClient.newBuilder().connectTimeout(timeout).version(HttpClient.Version.HTTP_1_1);
    if (authority != null || certificate != null) {
      client.sslContext(PemTls.context(authority, certificate, key, "schema.registry.tls.*"));
    }
    return client.build();
  }

  @Override
  public String toString() {
    return "schema registry " + urls;
  }
}
