package jmsbridge.serdes;

import com.fasterxml.jackson.core.JacksonException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Registry with the HTTP interface of Confluent's Schema Registry.
 *
 * <p>What it has answered is kept: schemas never change. Requests are repeated while the registry is away: for seconds
 * where a topology is planned, and for the time that the settings say in its tasks, which share one registry.
 */
public final class HttpRegistry implements SchemaRegistry {
  private static final long serialVersionUID = 1L;
  private static final Logger LOG = LoggerFactory.getLogger(HttpRegistry.class);
  private static final Map<RegistrySettings, HttpRegistry> RUNNING = new ConcurrentHashMap<>();
  private static final Duration START = Duration.ofSeconds(10);
  private static final Duration LONGEST_PAUSE = Duration.ofSeconds(5);
  /** How long an unknown id is not asked for again: a follower of the registry may learn of it a moment later. */
  private static final Duration UNKNOWN = Duration.ofSeconds(10);
  private static final Set<Integer> MAY_PASS = Set.of(408, 425, 429, 500, 502, 503, 504);
  private static final int NOT_FOUND = 404;
  /** The first status that is no answer to the question. */
  private static final int REFUSED = 300;
  private static final String SCHEMA = "schema";
  private static final String SUBJECT = "subject";

  private record Answer(int status, JsonNode body) {}

  private record Question(String type, String subject, SchemaText schema) {}

  private final RegistrySettings settings;
  private final transient Duration patience;
  private final transient HttpClient client;
  private final transient ObjectMapper json = new ObjectMapper();
  private final transient Map<Integer, SchemaText> schemas = new ConcurrentHashMap<>();
  private final transient Map<Integer, Long> unknown = new ConcurrentHashMap<>();
  private final transient Map<Question, Integer> ids = new ConcurrentHashMap<>();
  private transient int first;

  public HttpRegistry(RegistrySettings settings) {
    this(settings, START);
  }

  private HttpRegistry(RegistrySettings settings, Duration patience) {
    this.settings = settings;
    this.patience = patience;
    client = settings.client();
  }

  private Object readResolve() {
    return RUNNING.computeIfAbsent(settings, each -> new HttpRegistry(each, each.outage()));
  }

  @Override
  public SchemaText schema(String type, int id) {
    SchemaText known = schemas.get(id);
    if (known != null) {
      return known;
    }
    Long until = unknown.get(id);
    if (until != null && System.nanoTime() < until) {
      throw unknown(id);
    }
    String path = "/schemas/ids/%d%s".formatted(id, format(type));
    Answer answer = ask("GET", path, null);
    if (answer.status() == NOT_FOUND) {
      unknown.put(id, System.nanoTime() + UNKNOWN.toNanos());
      throw unknown(id);
    }
    SchemaText found = text(path, type, checked(path, answer));
    schemas.put(id, found);
    return found;
  }

  private static UnfitValueException unknown(int id) {
    return new UnfitValueException("the schema registry knows no schema with the id %d".formatted(id));
  }

  @Override
  public Version version(String type, String subject, int version) {
    String path = versions(subject) + "/" + (version == 0 ? "latest" : version) + format(type);
    JsonNode body = checked(path, ask("GET", path, null));
    return new Version(body.path("id").asInt(), text(path, type, body));
  }

  @Override
  public int register(String type, String subject, SchemaText schema) {
    return id(new Question(type, subject, schema), versions(subject));
  }

  @Override
  public int lookUp(String type, String subject, SchemaText schema) {
    return id(new Question(type, subject, schema), subject(subject));
  }

  private int id(Question question, String path) {
    Integer known = ids.get(question);
    if (known == null) {
      JsonNode body = body(question.type(), question.schema());
      known = checked(path, ask("POST", path, body)).path("id").asInt();
      ids.put(question, known);
    }
    return known;
  }

  private static String subject(String subject) {
    // An encoder of forms, which writes a blank as +.
    return "/subjects/" + URLEncoder.encode(subject, StandardCharsets.UTF_8).replace("+", "%20");
  }

  private static String versions(String subject) {
    return subject(subject) + "/versions";
  }

  /** Protobuf schemas are asked for as descriptors, which need no compiler; some registries give their text. */
  private static String format(String type) {
    return type.equals("PROTOBUF") ? "?format=serialized" : "";
  }

  private ObjectNode body(String type, SchemaText schema) {
    ObjectNode body = json.createObjectNode().put(SCHEMA, schema.text()).put("schemaType", type);
    ArrayNode references = json.createArrayNode();
    for (SchemaText.Reference each : schema.references()) {
      register(type, each.name(), each.schema());
      String path = subject(each.name());
      int version = checked(path, ask("POST", path, body(type, each.schema()))).path("version").asInt();
      references.addObject().put("name", each.name()).put(SUBJECT, each.name()).put("version", version);
    }
    if (!references.isEmpty()) {
      body.set("references", references);
    }
    return body;
  }

  private SchemaText text(String path, String type, JsonNode body) {
    String found = body.path("schemaType").asText("AVRO");
    if (!found.equals(type)) {
      throw new UnfitValueException("%s is a schema of %s and not of %s".formatted(path, found, type));
    }
    List<SchemaText.Reference> references = new ArrayList<>();
    for (JsonNode each : body.path("references")) {
      SchemaText schema = version(type, each.path(SUBJECT).asText(), each.path("version").asInt()).schema();
      references.add(new SchemaText.Reference(each.path("name").asText(), schema));
    }
    return new SchemaText(body.path(SCHEMA).asText(), references);
  }

  private static JsonNode checked(String path, Answer answer) {
    if (answer.status() >= REFUSED || answer.body() == null) {
      String message = answer.body() == null ? "" : answer.body().path("message").asText();
      throw new RegistryException(
          "the schema registry refuses %s: %d %s%s".formatted(path, answer.status(), message, hint(answer.status())),
          null);
    }
    return answer.body();
  }

  private static String hint(int status) {
    return switch (status) {
      case 401, 403 -> "; check schema.registry.username and schema.registry.password, or schema.registry.token";
      case 404 -> "; check the subject and the version, or register the schema";
      case 409 -> "; the schema is not compatible with the versions before it";
      default -> "";
    };
  }

  /** The registry's answer; waits while it is away. */
  private Answer ask(String method, String path, JsonNode body) {
    long begun = System.nanoTime();
    Duration pause = Duration.ofMillis(200);
    for (int tries = 0;; tries++) {
      String why = "";
      for (int at = 0; at < settings.urls().size(); at++) {
        int place = (first + at) % settings.urls().size();
        String url = settings.urls().get(place);
        try {
          Answer answer = send(url, method, path, body);
          if (!MAY_PASS.contains(answer.status())) {
            first = place;
            return answer;
          }
          why = "%s answers %d".formatted(url, answer.status());
        } catch (IOException failure) {
          why = "%s: %s".formatted(url, cause(failure));
        } catch (InterruptedException interrupted) {
          throw ended(interrupted);
        }
      }
      if (System.nanoTime() - begun > patience.toNanos()) {
        throw new RegistryOutageException(
            "the schema registry has been away for %d s (%s); check schema.registry.url, and that it runs"
                .formatted(Duration.ofNanos(System.nanoTime() - begun).toSeconds(), why),
            null);
      }
      if (tries == 0) {
        LOG.warn("the schema registry is away, and is asked again and again: {}", why);
      }
      pause = sleep(pause);
    }
  }

  private static Duration sleep(Duration pause) {
    try {
      Thread.sleep(pause.toMillis());
    } catch (InterruptedException interrupted) {
      throw ended(interrupted);
    }
    Duration next = pause.multipliedBy(2);
    return next.compareTo(LONGEST_PAUSE) > 0 ? LONGEST_PAUSE : next;
  }

  private static RegistryOutageException ended(InterruptedException interrupted) {
    Thread.currentThread().interrupt();
    return new RegistryOutageException("the topology ended while it waited for the schema registry", interrupted);
  }

  private Answer send(String url, String method, String path, JsonNode body) throws IOException, InterruptedException {
    HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(url + path)).timeout(settings.timeout())
        .header("Accept", "application/vnd.schemaregistry.v1+json, application/json")
        .header("Content-Type", "application/vnd.schemaregistry.v1+json")
        .method(method, body == null
            ? HttpRequest.BodyPublishers.noBody()
            : HttpRequest.BodyPublishers.ofString(body.toString()));
    settings.authorization().ifPresent(value -> request.header("Authorization", value));
    HttpResponse<byte[]> response = client.send(request.build(), HttpResponse.BodyHandlers.ofByteArray());
    JsonNode read = null;
    try {
      read = json.readTree(response.body());
    } catch (JacksonException failure) {
      if (response.statusCode() < REFUSED) {
        throw new IOException("the answer is no JSON: is this a schema registry?", failure);
      }
    }
    return new Answer(response.statusCode(), read);
  }

  private static String cause(Throwable failure) {
    Throwable first = failure;
    while (first.getCause() != null) {
      first = first.getCause();
    }
    return first.getMessage() == null ? first.getClass().getSimpleName() : first.getMessage();
  }
}
