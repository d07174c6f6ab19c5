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
import java.net.http.HttpTimeoutException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Registry with the HTTP interface of Confluent's Schema Registry.
 *
 * <p>What it has answered is kept: schemas never change. Requests are repeated while the registry is away: for seconds
 * where a topology is planned, and for the time that the settings say in its tasks, which share one registry.
 *
 * <p>An id that gets no good answer is at fault alone as long as the registry answers another question. If it does not, it
 * is away, whatever it says.
 */
public final class HttpRegistry implements SchemaRegistry {
  private static final long serialVersionUID = 1L;
  private static final Logger LOG = LoggerFactory.getLogger(HttpRegistry.class);
  private static final Map<RegistrySettings, HttpRegistry> RUNNING = new ConcurrentHashMap<>();
  private static final Duration START = Duration.ofSeconds(10);
  private static final Duration LONGEST_PAUSE = Duration.ofSeconds(5);
  private static final Duration FIRST_PAUSE = Duration.ofMillis(200);
  /** Answers of a server that has too much to do, whatever it is asked. */
  private static final Set<Integer> BUSY = Set.of(408, 425, 429, 503);
  private static final Set<Integer> MAY_PASS = Set.of(408, 425, 429, 500, 502, 503, 504);
  private static final int MOST_TRIES = 3;
  private static final int MOST_IDS = 10_000;
  /** A question that any registry answers, if only with 404, where none has been answered yet. */
  private static final String ANY_PATH = "/schemas/ids/" + Integer.MAX_VALUE;
  private static final int NOT_FOUND = 404;
  private static final int UNAUTHORIZED = 401;
  /** The first status that is not an answer to the question. */
  private static final int REFUSED = 300;
  private static final String SCHEMA = "schema";
  private static final String SUBJECT = "subject";

  private record Answer(int status, JsonNode body) {}

  /** What servers have said to a request: an answer, or why there is none; {@code isLate} if a server did not answer. */
  private record Reply(Answer answer, String why, boolean isLate) {
    private boolean isAnswer() {
      return answer != null && (answer.status() < REFUSED && answer.body() != null || answer.status() == NOT_FOUND);
    }

    private boolean isBusy() {
      return answer != null && BUSY.contains(answer.status());
    }

    private boolean isRefusal() {
      return answer != null && !isAnswer() && !MAY_PASS.contains(answer.status());
    }
  }

  private record Question(String type, String subject, SchemaText schema) {}

  private final RegistrySettings settings;
  /** Path of a question that the registry has answered. */
  private volatile String answered = ANY_PATH;
  private transient volatile long answeredAt = System.nanoTime();
  /** What keeps tasks waiting; empty: nothing. */
  private transient volatile String trouble = "";
  private final transient Duration patience;
  private final transient HttpClient client;
  /** Tokens that log in; null: the login is among the headers. */
  private final transient AccessTokens tokens;
  private final transient ObjectMapper json = new ObjectMapper();
  private final transient SchemaIds schemas = new SchemaIds(this::look, () -> !trouble.isEmpty());
  private final transient Map<Question, Integer> ids = Collections.synchronizedMap(new Recent<>(MOST_IDS));
  private final transient SchemaCopies copies;
  private transient volatile int first;

  public HttpRegistry(RegistrySettings settings) {
    this(settings, START);
  }

  private HttpRegistry(RegistrySettings settings, Duration patience) {
    this.settings = settings;
    this.patience = patience;
    client = settings.client();
    tokens = settings.tokens() == null ? null : new AccessTokens(settings.tokens());
    copies = new SchemaCopies(settings.copies());
  }

  private Object readResolve() {
    return RUNNING.computeIfAbsent(settings, each -> {
      HttpRegistry running = new HttpRegistry(each, each.outage());
      running.answered = answered;
      return running;
    });
  }

  /** What keeps tasks of this process waiting for a registry, in words; empty: nothing. */
  public static String troubles() {
    return RUNNING.values().stream().map(each -> each.trouble).filter(each -> !each.isEmpty()).findFirst().orElse("");
  }

  @Override
  public void expect(String type, Collection<Integer> wanted) {
    schemas.expect(type, wanted);
  }

  @Override
  public Typed typed(int id) {
    return known(SchemaIds.ANY, id);
  }

  @Override
  public SchemaText schema(String type, int id) {
    return known(type, id).schema();
  }

  private Typed known(String type, int id) {
    Wait wait = new Wait();
    while (true) {
      try {
        SchemaIds.Answer answer = schemas.get(type, id);
        if (answer.fault() != null) {
          throw new UnfitValueException(answer.fault());
        }
        if (answer.schema() != null) {
          return answer.schema();
        }
      } catch (InterruptedException interrupted) {
        throw ended(interrupted);
      }
      wait.on(trouble);
    }
  }

  /** Asks for an id; while the registry is away, once. */
  private SchemaIds.Answer look(SchemaIds.Id id) {
    Typed copy = copies.schema(id.number());
    if (copy != null && (id.type().equals(SchemaIds.ANY) || id.type().equals(copy.type()))) {
      return new SchemaIds.Answer(copy, null);
    }
    String path = "/schemas/ids/%d%s".formatted(id.number(), format(id.type()));
    Reply reply = null;
    for (int tries = 0; tries < MOST_TRIES; tries++) {
      long begun = System.nanoTime();
      reply = once("GET", path, null);
      if (reply.isAnswer()) {
        return answer(path, id, reply.answer());
      }
      // What the registry answered at the beginning of a long wait says nothing of its end.
      long since = reply.isLate() ? System.nanoTime() : begun;
      if (reply.isBusy() || (isPlanning() ? !reply.isRefusal() : !works(since))) {
        away(reply.why());
        return SchemaIds.Answer.AWAY;
      }
      if (reply.isRefusal() || reply.isLate() && tries > 0) {
        break;
      }
      sleep(FIRST_PAUSE.multipliedBy(tries + 1));
    }
    return new SchemaIds.Answer(null, reply.isRefusal()
        ? refusal(path, reply.answer())
        : "the schema registry does not give the schema with the id %d, while it answers other requests: %s"
            .formatted(id.number(), reply.why()));
  }

  private SchemaIds.Answer answer(String path, SchemaIds.Id id, Answer answer) {
    if (answer.status() == NOT_FOUND) {
      return new SchemaIds.Answer(null, "the schema registry knows no schema with the id %d".formatted(id.number()));
    }
    String type = answer.body().path("schemaType").asText("AVRO");
    if (id.type().equals(SchemaIds.ANY) && !format(type).isEmpty()) {
      // Asked for once more, in the form that this format is read in.
      return look(new SchemaIds.Id(type, id.number()));
    }
    try {
      Typed typed = new Typed(type, text(path, id.type().equals(SchemaIds.ANY) ? type : id.type(), answer.body()));
      copies.keep(id.number(), typed);
      return new SchemaIds.Answer(typed, null);
    } catch (RegistryOutageException away) {
      throw away;
    } catch (UnfitValueException | RegistryException fault) {
      return new SchemaIds.Answer(null, fault.getMessage());
    }
  }

  private boolean isPlanning() {
    return patience == START;
  }

  /** Whether the registry has answered a question since a time, or answers one now. */
  private boolean works(long since) {
    return answeredAt - since > 0 || once("GET", answered, null).isAnswer();
  }

  @Override
  public Version version(String type, String subject, int version) {
    Version copy = copies.version(type, subject, version);
    if (copy != null && version != 0) {
      return copy;
    }
    String path = versions(subject) + "/" + (version == 0 ? "latest" : version) + format(type);
    try {
      JsonNode body = checked(path, ask("GET", path, null));
      Version latest = new Version(body.path("version").asInt(version), body.path("id").asInt(), text(path, type, body));
      copies.keep(type, subject, version, latest);
      return latest;
    } catch (RegistryOutageException away) {
      if (copy != null) {
        LOG.warn("the schema registry is away: the latest version of '{}' is the one of the copies", subject);
        return copy;
      }
      throw away;
    }
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
    for (SchemaText.Reference reference : schema.references()) {
      register(type, reference.name(), reference.schema());
      String path = subject(reference.name());
      int version = checked(path, ask("POST", path, body(type, reference.schema()))).path("version").asInt();
      references.addObject().put("name", reference.name()).put(SUBJECT, reference.name()).put("version", version);
    }
    if (!references.isEmpty()) {
      body.set("references", references);
    }
    return body;
  }

  private SchemaText text(String path, String type, JsonNode body) {
    String format = body.path("schemaType").asText("AVRO");
    if (!format.equals(type)) {
      throw new UnfitValueException("%s is a schema of %s and not of %s".formatted(path, format, type));
    }
    List<SchemaText.Reference> references = new ArrayList<>();
    for (JsonNode reference : body.path("references")) {
      SchemaText schema = version(type, reference.path(SUBJECT).asText(), reference.path("version").asInt()).schema();
      references.add(new SchemaText.Reference(reference.path("name").asText(), schema));
    }
    return new SchemaText(body.path(SCHEMA).asText(), references);
  }

  private static JsonNode checked(String path, Answer answer) {
    if (answer.status() >= REFUSED || answer.body() == null) {
      throw new RegistryException(refusal(path, answer), null);
    }
    return answer.body();
  }

  private static String refusal(String path, Answer answer) {
    String message = answer.body() == null ? "" : answer.body().path("message").asText();
    return "the schema registry refuses %s: %d %s%s".formatted(path, answer.status(), message, hint(answer.status()));
  }

  private static String hint(int status) {
    return switch (status) {
      case 401, 403 -> "; check schema.registry.username and schema.registry.password, schema.registry.token, "
          + "or schema.registry.oauthbearer.*";
      case 404 -> "; check the subject and the version, or register the schema";
      case 409 -> "; the schema is not compatible with the versions before it";
      default -> "";
    };
  }

  /** The registry's answer; waits while it is away. In a task, a registry that refuses all that it is asked is away. */
  private Answer ask(String method, String path, JsonNode body) {
    Wait wait = new Wait();
    while (true) {
      long begun = System.nanoTime();
      Reply reply = once(method, path, body);
      if (reply.isAnswer() || reply.isRefusal() && (isPlanning() || works(begun))) {
        return reply.answer();
      }
      away(reply.why());
      wait.on(trouble);
    }
  }

  /** Asks each server until one answers. */
  private Reply once(String method, String path, JsonNode body) {
    Reply reply = null;
    for (int index = 0; index < settings.urls().size(); index++) {
      int place = (first + index) % settings.urls().size();
      String url = settings.urls().get(place);
      try {
        Answer answer = send(url, method, path, body);
        reply = new Reply(answer, "%s answers %d".formatted(url, answer.status()), false);
        if (!MAY_PASS.contains(answer.status())) {
          first = place;
          if (reply.isAnswer()) {
            noteAnswer(method, path, answer);
          }
          return reply;
        }
      } catch (TokenRefusedException refusal) {
        // Without a token, every server refuses the login.
        JsonNode message = json.createObjectNode().put("message", refusal.getMessage());
        return new Reply(new Answer(UNAUTHORIZED, message), refusal.getMessage(), false);
      } catch (IOException failure) {
        String why = "%s: %s".formatted(url, RegistryOutageException.cause(failure));
        reply = new Reply(null, why, failure instanceof HttpTimeoutException);
      } catch (InterruptedException interrupted) {
        throw ended(interrupted);
      }
    }
    return reply;
  }

  /** Notes that the registry works. */
  private void noteAnswer(String method, String path, Answer answer) {
    answeredAt = System.nanoTime();
    if (method.equals("GET") && answer.status() != NOT_FOUND) {
      answered = path;
    }
    if (!trouble.isEmpty()) {
      trouble = "";
      LOG.warn("the schema registry answers again");
    }
  }

  /** Notes that the registry is away. */
  private void away(String why) {
    if (trouble.isEmpty()) {
      LOG.warn("the schema registry is away, and is asked again and again: {}", why);
    }
    trouble = "waiting for the schema registry: " + why;
  }

  /** Growing pauses of a task that waits for the registry. */
  private final class Wait {
    private final long begun = System.nanoTime();
    private Duration pause = FIRST_PAUSE;

    /** Waits once more; RegistryOutageException after the time for which the registry may be away. */
    void on(String reason) {
      long waited = System.nanoTime() - begun;
      if (waited > patience.toNanos()) {
        throw new RegistryOutageException(
            "the schema registry has been away for %d s (%s); check schema.registry.url, and that it runs"
                .formatted(Duration.ofNanos(waited).toSeconds(), reason),
            null);
      }
      sleep(pause);
      Duration next = pause.multipliedBy(2);
      pause = next.compareTo(LONGEST_PAUSE) > 0 ? LONGEST_PAUSE : next;
    }
  }

  private static void sleep(Duration pause) {
    try {
      Thread.sleep(pause.toMillis());
    } catch (InterruptedException interrupted) {
      throw ended(interrupted);
    }
  }

  private static RegistryOutageException ended(InterruptedException interrupted) {
    Thread.currentThread().interrupt();
    return new RegistryOutageException("the topology ended while it waited for the schema registry", interrupted);
  }

  /** The answer of one server; a token that it refuses is replaced by a new one, once. */
  private Answer send(String url, String method, String path, JsonNode body) throws IOException, InterruptedException {
    if (tokens == null) {
      return send(url, method, path, body, null);
    }
    String token = tokens.token();
    Answer answer = send(url, method, path, body, token);
    if (answer.status() != UNAUTHORIZED) {
      return answer;
    }
    tokens.forget(token);
    return send(url, method, path, body, tokens.token());
  }

  private Answer send(String url, String method, String path, JsonNode body, String token)
      throws IOException, InterruptedException {
    HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(url + path)).timeout(settings.timeout())
        .header("Accept", "application/vnd.schemaregistry.v1+json, application/json")
        .header("Content-Type", "application/vnd.schemaregistry.v1+json")
        .method(method, body == null
            ? HttpRequest.BodyPublishers.noBody()
            : HttpRequest.BodyPublishers.ofString(body.toString()));
    settings.headers().forEach(request::header);
    if (token != null) {
      request.header("Authorization", "Bearer " + token);
    }
    HttpResponse<byte[]> response = response(request.build());
    JsonNode read = null;
    try {
      read = json.readTree(response.body());
    } catch (JacksonException failure) {
      if (response.statusCode() < REFUSED) {
        throw new IOException("the answer is not JSON: is this a schema registry?", failure);
      }
    }
    return new Answer(response.statusCode(), read);
  }

  /** The whole response: the time-out of a request ends with the head of its response. */
  private HttpResponse<byte[]> response(HttpRequest request) throws IOException, InterruptedException {
    CompletableFuture<HttpResponse<byte[]>> sent =
        client.sendAsync(request, HttpResponse.BodyHandlers.ofByteArray());
    try {
      return sent.get(settings.timeout().toMillis(), TimeUnit.MILLISECONDS);
    } catch (TimeoutException late) {
      sent.cancel(true);
      throw new HttpTimeoutException("request timed out");
    } catch (ExecutionException failure) {
      throw failure.getCause() instanceof IOException known ? known : new IOException(failure.getCause());
    }
  }
}
