package jmsbridge.serdes;

import com.fasterxml.jackson.core.JacksonException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.StreamSupport;

/**
 * Access tokens that an OpenID Connect server gives to a client with a secret (RFC 6749, 4.4), each kept for most of
 * the time for which it holds. {@code engine.openid.access_tokens} has the same in Python.
 */
final class AccessTokens {
  private static final Duration TIMEOUT = Duration.ofSeconds(10);
  private static final long DEFAULT_SECONDS = 300;
  /** Share of a token's time, in percent, after which the next one is asked for, as Kafka's clients do. */
  private static final long RENEWED_PERCENT = 80;
  private static final Duration PAUSE = Duration.ofSeconds(10);
  /** Answers of an issuer that may give a token later. */
  private static final Set<Integer> AWAY = Set.of(429);
  private static final int SERVER_FAULT = 500;
  private static final int REFUSED = 300;
  private static final int MOST_REASON = 200;
  private static final String TOKEN = "[A-Za-z0-9._~+/-]+=*";

  private final TokenLogin login;
  private final HttpClient client;
  private final ObjectMapper json = new ObjectMapper();
  private String known;
  private long renewAt;
  private long endsAt;

  AccessTokens(TokenLogin login) {
    this.login = login;
    HttpClient.Builder builder =
        HttpClient.newBuilder().connectTimeout(TIMEOUT).version(HttpClient.Version.HTTP_1_1);
    if (login.authority() != null) {
      builder.sslContext(PemTls.context(login.authority(), null, null, login.keys() + "oauthbearer.ca"));
    }
    client = builder.build();
  }

  /** A token that holds; while the issuer is away the last one, as long as it holds. */
  synchronized String token() throws IOException, InterruptedException {
    long now = System.nanoTime();
    if (known != null && now - renewAt < 0) {
      return known;
    }
    try {
      ask(now);
    } catch (IOException away) {
      if (known == null || now - endsAt >= 0) {
        throw away;
      }
      renewAt = now + PAUSE.toNanos();
    }
    return known;
  }

  /** Forgets a token that has been refused. */
  synchronized void forget(String refused) {
    if (refused.equals(known)) {
      known = null;
    }
  }

  private void ask(long now) throws IOException, InterruptedException {
    JsonNode metadata = login.issuer() == null ? json.createObjectNode() : discovered();
    String endpoint = login.issuer() == null ? login.endpoint() : metadata.path("token_endpoint").asText();
    Map<String, String> form = new LinkedHashMap<>(Map.of("grant_type", "client_credentials"));
    if (login.scope() != null) {
      form.put("scope", login.scope());
    }
    HttpRequest.Builder request = HttpRequest.newBuilder(uri(endpoint));
    if (takesBasic(metadata.path("token_endpoint_auth_methods_supported"))) {
      byte[] shown = (encoded(login.clientId()) + ":" + encoded(login.secret())).getBytes(StandardCharsets.UTF_8);
      request.header("Authorization", "Basic " + Base64.getEncoder().encodeToString(shown));
    } else {
      form.put("client_id", login.clientId());
      form.put("client_secret", login.secret());
    }
    String body = form.entrySet().stream()
        .map(each -> each.getKey() + "=" + encoded(each.getValue())).collect(Collectors.joining("&"));
    JsonNode said = answer(endpoint, request.header("Content-Type", "application/x-www-form-urlencoded")
        .POST(HttpRequest.BodyPublishers.ofString(body)));
    String token = said.path("access_token").asText();
    if (!token.matches(TOKEN) || !said.path("token_type").asText("bearer").equalsIgnoreCase("bearer")) {
      throw new TokenRefusedException(endpoint + ": the answer has no bearer token");
    }
    long lasting = Math.max(Duration.ofSeconds(said.path("expires_in").asLong(DEFAULT_SECONDS)).toNanos(), 0);
    known = token;
    renewAt = now + lasting / 100 * RENEWED_PERCENT;
    endsAt = now + lasting;
  }

  private JsonNode discovered() throws IOException, InterruptedException {
    String issuer = login.issuer().replaceAll("/+$", "");
    String address = issuer + "/.well-known/openid-configuration";
    JsonNode said = answer(address, HttpRequest.newBuilder(uri(address)));
    String named = said.path("issuer").asText();
    if (!named.replaceAll("/+$", "").equals(issuer)) {
      throw new TokenRefusedException("%s: the answer is that of the issuer '%s'".formatted(address, line(named)));
    }
    return said;
  }

  /** The JSON object of an answer. */
  private JsonNode answer(String address, HttpRequest.Builder request) throws IOException, InterruptedException {
    HttpResponse<byte[]> response;
    try {
      request.timeout(TIMEOUT).header("Accept", "application/json");
      response = client.send(request.build(), HttpResponse.BodyHandlers.ofByteArray());
    } catch (IOException away) {
      String why = RegistryOutageException.cause(away);
      // Without its cause, whose text would stand in its place.
      throw new IOException("the issuer of tokens does not answer: %s: %s".formatted(address, why));
    }
    int status = response.statusCode();
    if (AWAY.contains(status) || status >= SERVER_FAULT) {
      throw new IOException("the issuer of tokens does not answer: %s: HTTP status %d".formatted(address, status));
    }
    JsonNode said;
    try {
      said = json.readTree(response.body());
    } catch (JacksonException broken) {
      said = json.missingNode();
    }
    if (status >= REFUSED) {
      throw new TokenRefusedException("%s: HTTP status %d%s".formatted(address, status, reason(said)));
    }
    if (said == null || !said.isObject()) {
      throw new TokenRefusedException(address + ": the answer is not a JSON object");
    }
    return said;
  }

  /** The reason that an issuer gives for a refusal (RFC 6749, 5.2). */
  private static String reason(JsonNode said) {
    String why = line(said.path("error_description").asText(said.path("error").asText()));
    return why.isEmpty() ? "" : " (" + why + ")";
  }

  /** An issuer's text as a part of one line: some explain a refusal in several. */
  private static String line(String text) {
    String line = text.replaceAll("[\\s\\p{C}]+", " ").strip();
    return line.substring(0, Math.min(line.length(), MOST_REASON));
  }

  private URI uri(String address) throws TokenRefusedException {
    if (!address.startsWith("https://") && !address.startsWith("http://")) {
      throw new TokenRefusedException("%s: the issuer names no token_endpoint".formatted(login.issuer()));
    }
    return URI.create(address);
  }

  private static boolean takesBasic(JsonNode methods) {
    Set<String> named =
        StreamSupport.stream(methods.spliterator(), false).map(JsonNode::asText).collect(Collectors.toSet());
    return !methods.isArray() || named.contains("client_secret_basic") || !named.contains("client_secret_post");
  }

  private static String encoded(String text) {
    return URLEncoder.encode(text, StandardCharsets.UTF_8);
  }
}
