package jmsbridge.msk;

import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Base64;
import java.util.HexFormat;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;

/**
 * Token for the login by IAM at Amazon MSK: the same text as that of `engine.kafka.msk_token`, which says what it is
 * made of.
 *
 * @param value the text for the broker
 * @param startTimeMs time at which it was signed, in milliseconds since 1970
 * @param principalName id of the key that signed it
 */
public record MskToken(String value, Long startTimeMs, String principalName) implements OAuthBearerToken {
  private static final Duration LIFE = Duration.ofMinutes(15);
  private static final String SERVICE = "kafka-cluster";
  private static final String ALGORITHM = "AWS4-HMAC-SHA256";
  private static final DateTimeFormatter TIME =
      DateTimeFormatter.ofPattern("yyyyMMdd'T'HHmmss'Z'").withZone(ZoneOffset.UTC);
  private static final int DATE_LENGTH = 8;

  /**
   * Returns the token that is signed at a time.
   *
   * @param at milliseconds since 1970
   */
  public static MskToken signed(String region, AwsCredentials credentials, long at) {
    String time = TIME.format(Instant.ofEpochMilli(at));
    String host = "kafka." + region + ".amazonaws.com";
    String scope = time.substring(0, DATE_LENGTH) + "/" + region + "/" + SERVICE + "/aws4_request";
    Map<String, String> query = new TreeMap<>(Map.of(
        "Action", SERVICE + ":Connect",
        "X-Amz-Algorithm", ALGORITHM,
        "X-Amz-Credential", credentials.accessKey() + "/" + scope,
        "X-Amz-Date", time,
        "X-Amz-Expires", String.valueOf(LIFE.toSeconds()),
        "X-Amz-SignedHeaders", "host"));
    if (!credentials.sessionToken().isEmpty()) {
      query.put("X-Amz-Security-Token", credentials.sessionToken());
    }
    String written = query.entrySet().stream()
        .map(each -> each.getKey() + "=" + quoted(each.getValue()))
        .collect(Collectors.joining("&"));
    String request = "GET\n/\n" + written + "\nhost:" + host + "\n\nhost\n" + hash("");
    String text = ALGORITHM + "\n" + time + "\n" + scope + "\n" + hash(request);
    byte[] key = bytes("AWS4" + credentials.secretKey());
    for (String part : scope.split("/")) {
      key = keyed(key, part);
    }
    String signature = HexFormat.of().formatHex(keyed(key, text));
    String url = "https://" + host + "/?" + written + "&X-Amz-Signature=" + signature + "&User-Agent=jms-bridge";
    String value = Base64.getUrlEncoder().withoutPadding().encodeToString(bytes(url));
    return new MskToken(value, at, credentials.accessKey());
  }

  @Override
  public long lifetimeMs() {
    return startTimeMs + LIFE.toMillis();
  }

  @Override
  public Set<String> scope() {
    return Set.of();
  }

  /** Shows no token. */
  @Override
  public String toString() {
    return "MskToken[" + principalName + "]";
  }

  private static String quoted(String text) {
    return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20").replace("*", "%2A").replace("%7E", "~");
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private static String hash(String text) {
    try {
      return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes(text)));
    } catch (GeneralSecurityException error) {
      throw new IllegalStateException(error);
    }
  }

  private static byte[] keyed(byte[] key, String text) {
    try {
      Mac mac = Mac.getInstance("HmacSHA256");
      mac.init(new SecretKeySpec(key, "HmacSHA256"));
      return mac.doFinal(bytes(text));
    } catch (GeneralSecurityException error) {
      throw new IllegalStateException(error);
    }
  }
}
