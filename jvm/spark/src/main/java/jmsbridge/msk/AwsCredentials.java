package jmsbridge.msk;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;

/**
 * Credentials of a user or a role of AWS. They are looked for where `engine.kafka.aws_credentials` looks for them, anew
 * for each token, since temporary credentials change.
 *
 * @param accessKey id of the key
 * @param sessionToken token of temporary credentials; empty for those of a user
 */
public record AwsCredentials(String accessKey, String secretKey, String sessionToken) {
  private static final Duration LIMIT = Duration.ofSeconds(5);
  private static final String CONTAINER = "http://169.254.170.2";
  private static final String MACHINE = "http://169.254.169.254";
  private static final String ROLE = "/latest/meta-data/iam/security-credentials/";
  private static final String NEEDED = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give this machine a role";
  private static final int OK = 200;

  /** Checks that the key and its secret are there. */
  public AwsCredentials {
    if (accessKey == null || accessKey.isEmpty() || secretKey == null || secretKey.isEmpty()) {
      throw new IllegalArgumentException("the credentials for AWS lack a key or its secret; " + NEEDED);
    }
    sessionToken = sessionToken == null ? "" : sessionToken;
  }

  /**
   * Returns the credentials of the first place that has some: the variables of the environment, the profile of a file,
   * the service that a container's variables name, and the metadata service of the machine.
   *
   * @throws IllegalArgumentException if no place has any, or those that it has are incomplete
   * @throws IOException if a service does not answer, or refuses
   */
  public static AwsCredentials find(Map<String, String> environment) throws IOException {
    String key = environment.get("AWS_ACCESS_KEY_ID");
    if (key != null) {
      return new AwsCredentials(
          key, environment.get("AWS_SECRET_ACCESS_KEY"), environment.get("AWS_SESSION_TOKEN"));
    }
    AwsCredentials ofProfile = ofProfile(environment);
    if (ofProfile != null) {
      return ofProfile;
    }
    String container = container(environment);
    if (container != null) {
      return ofAnswer(asked("GET", container, containerHeaders(environment)));
    }
    if ("true".equalsIgnoreCase(environment.get("AWS_EC2_METADATA_DISABLED"))) {
      throw new IllegalArgumentException("there are no credentials for AWS; " + NEEDED);
    }
    return ofMachine(environment.getOrDefault("AWS_EC2_METADATA_SERVICE_ENDPOINT", MACHINE).replaceFirst("/+$", ""));
  }

  /** Shows no secret. */
  @Override
  public String toString() {
    return "AwsCredentials[" + accessKey + "]";
  }

  private static AwsCredentials ofProfile(Map<String, String> environment) throws IOException {
    String name = environment.get("AWS_PROFILE");
    String home = System.getProperty("user.home");
    String path = environment.getOrDefault("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials");
    Path file = Path.of(path.startsWith("~/") ? home + path.substring(1) : path);
    Map<String, String> given = Files.isRegularFile(file) ? profile(file, name == null ? "default" : name) : null;
    if (given != null) {
      return new AwsCredentials(
          given.get("aws_access_key_id"), given.get("aws_secret_access_key"), given.get("aws_session_token"));
    }
    if (name != null) {
      throw new IllegalArgumentException(file + " has no profile '" + name + "'; correct AWS_PROFILE");
    }
    return null;
  }

  /** Returns the settings of a profile; null if the file has none of this name. */
  private static Map<String, String> profile(Path file, String name) throws IOException {
    Map<String, String> found = null;
    boolean isInside = false;
    for (String line : Files.readAllLines(file)) {
      String text = line.strip();
      if (text.startsWith("[") && text.endsWith("]")) {
        isInside = text.equals("[" + name + "]");
        found = isInside ? new HashMap<>() : found;
      } else if (isInside && !text.startsWith("#") && !text.startsWith(";")) {
        String[] parts = text.split("[=:]", 2);
        found.put(parts[0].strip().toLowerCase(Locale.ROOT), parts[parts.length - 1].strip());
      }
    }
    return found;
  }

  /** Returns the address that gives a container's credentials; null outside of a container of AWS. */
  private static String container(Map<String, String> environment) {
    String relative = environment.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    return relative == null || relative.isEmpty()
        ? environment.get("AWS_CONTAINER_CREDENTIALS_FULL_URI")
        : CONTAINER + relative;
  }

  private static Map<String, String> containerHeaders(Map<String, String> environment) throws IOException {
    String token = environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    String file = environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    if (file != null && !file.isEmpty()) {
      token = Files.readString(Path.of(file)).strip();
    }
    return token == null ? Map.of() : Map.of("Authorization", token);
  }

  private static AwsCredentials ofMachine(String service) throws IOException {
    String session = asked("PUT", service + "/latest/api/token", Map.of("X-aws-ec2-metadata-token-ttl-seconds", "60"));
    Map<String, String> headers = Map.of("X-aws-ec2-metadata-token", session);
    String role = asked("GET", service + ROLE, headers).lines().findFirst().orElse("").strip();
    return ofAnswer(asked("GET", service + ROLE + role, headers));
  }

  private static AwsCredentials ofAnswer(String text) throws IOException {
    JsonNode said;
    try {
      said = new ObjectMapper().readTree(text);
    } catch (JsonProcessingException unreadable) {
      throw new IOException("the service with credentials for AWS does not answer in JSON", unreadable);
    }
    return new AwsCredentials(
        said.path("AccessKeyId").asText(""), said.path("SecretAccessKey").asText(""), said.path("Token").asText(""));
  }

  private static String asked(String method, String address, Map<String, String> headers) throws IOException {
    HttpRequest.Builder request =
        HttpRequest.newBuilder(URI.create(address)).timeout(LIMIT).method(method, HttpRequest.BodyPublishers.noBody());
    headers.forEach(request::header);
    HttpResponse<String> answer;
    try {
      answer = HttpClient.newBuilder().connectTimeout(LIMIT).build()
          .send(request.build(), HttpResponse.BodyHandlers.ofString());
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
      throw new IOException("the request for credentials for AWS was interrupted", stopped);
    } catch (IOException failed) {
      String what = "the service with credentials for AWS does not answer: ";
      throw new IOException(what + address + "; " + NEEDED, failed);
    }
    if (answer.statusCode() != OK) {
      throw new IOException(address + ": HTTP status " + answer.statusCode() + "; " + NEEDED);
    }
    return answer.body();
  }
}
