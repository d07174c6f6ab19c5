package jmsbridge.serdes;

import java.io.IOException;
import java.io.Serializable;
import java.net.http.HttpClient;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import javax.net.ssl.SSLContext;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.ssl.DefaultSslEngineFactory;

/**
 * Address and login of a schema registry; its text shows no secrets.
 *
 * @param urls addresses of the registry's servers, tried in turn
 * @param username null: no name and password
 * @param token bearer token; null: none
 * @param authority file of certificates (PEM) to trust; null: those of Java
 * @param certificate file of the own certificate (PEM); null: none
 * @param key file of its private key (PEM)
 * @param timeout for a request
 * @param outage how long the registry may be away before a topology ends
 * @param copies folder for copies of its schemas; null: none are kept
 */
public record RegistrySettings(
    List<String> urls, String username, String password, String token, String authority, String certificate, String key,
    Duration timeout, Duration outage, String copies) implements Serializable {
  /** Creates the settings from Python's list and numbers of milliseconds. */
  public static RegistrySettings of(
      List<String> urls, String username, String password, String token, String authority, String certificate,
      String key, long timeoutMs, long outageMs, String copies) {
    return new RegistrySettings(List.copyOf(urls), username, password, token, authority, certificate, key,
        Duration.ofMillis(timeoutMs), Duration.ofMillis(outageMs), copies);
  }

  Optional<String> authorization() {
    if (token != null) {
      return Optional.of("Bearer " + token);
    }
    if (username == null) {
      return Optional.empty();
    }
    byte[] login = (username + ":" + password).getBytes(StandardCharsets.UTF_8);
    return Optional.of("Basic " + Base64.getEncoder().encodeToString(login));
  }

  HttpClient client() {
    HttpClient.Builder client =
        HttpClient.newBuilder().connectTimeout(timeout).version(HttpClient.Version.HTTP_1_1);
    if (authority != null || certificate != null) {
      client.sslContext(context());
    }
    return client.build();
  }

  /** TLS with the files, which Kafka's own class reads. */
  private SSLContext context() {
    Map<String, Object> files = new HashMap<>(Map.of("ssl.protocol", "TLSv1.3"));
    if (authority != null) {
      files.put("ssl.truststore.type", "PEM");
      files.put("ssl.truststore.location", authority);
    }
    try (DefaultSslEngineFactory factory = new DefaultSslEngineFactory()) {
      if (certificate != null) {
        files.put("ssl.keystore.type", "PEM");
        files.put("ssl.keystore.certificate.chain", new Password(Files.readString(Path.of(certificate))));
        files.put("ssl.keystore.key", new Password(Files.readString(Path.of(key))));
      }
      factory.configure(files);
      return factory.sslContext();
    } catch (IOException | KafkaException failure) {
      throw new RegistryException("the files of schema.registry.tls.* cannot be used: " + failure.getMessage(), failure);
    }
  }

  @Override
  public String toString() {
    return "schema registry " + urls;
  }
}
