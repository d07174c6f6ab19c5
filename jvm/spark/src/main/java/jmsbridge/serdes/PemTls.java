package jmsbridge.serdes;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import javax.net.ssl.SSLContext;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.ssl.DefaultSslEngineFactory;

/** TLS with PEM files, which Kafka's own class reads. */
final class PemTls {
  private PemTls() {}

  /** Returns the context; each of the files may be null, and {@code keys} names the keys of the configuration. */
  static SSLContext context(String authority, String certificate, String key, String keys) {
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
      throw new RegistryException("the files of %s cannot be used: %s".formatted(keys, failure.getMessage()), failure);
    }
  }
}
