package jmsbridge.kafka;

import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.DescribeTopicsOptions;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.errors.InvalidTopicException;
import org.apache.kafka.common.errors.TopicAuthorizationException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.internals.Topic;

/**
 * Kafka's answers about the topics that records are published to, one object for all tasks of this JVM with the same
 * settings.
 *
 * <p>A failed send aborts a transaction, or stays in a producer for minutes. Therefore publishers ask here before they
 * send. The first question about a topic waits for Kafka's answer; a thread asks again every few seconds, so that a
 * topic which is deleted, created or changed later is noticed.
 */
public final class OutputTopics {
  private static final int ANSWER_MS = 30_000;
  private static final long LOOK_MS = 3_000;
  private static final long SOON_MS = 200;
  /** Time for which Kafka has to miss a topic: brokers take a moment to learn of a new one, or after a restart. */
  private static final long MISSING_NANOS = 3_000_000_000L;
  /** Waits for topics that may be new: so many at first, and one more after each pause, so that no flood waits. */
  private static final int MOST_WAITS = 10;
  private static final long WAIT_PAUSE_NANOS = 30_000_000_000L;
  private static final int MOST_TOPICS = 10_000;
  private static final int MOST_SHOWN = 249;
  private static final Map<Map<String, Object>, OutputTopics> OPEN = new HashMap<>();

  private final Admin admin;
  private final Map<String, Known> all = new ConcurrentHashMap<>();
  private volatile boolean isUsed;
  private int waits = MOST_WAITS;
  private long waitsSince = System.nanoTime();

  private OutputTopics(Map<String, Object> settings) {
    admin = Admin.create(settings);
    Thread looking = new Thread(this::lookAgain, "output topics");
    looking.setDaemon(true);
    looking.start();
  }

  /** The answers for the settings of a producer. */
  public static synchronized OutputTopics of(Map<String, ?> producer) {
    Map<String, Object> settings = new HashMap<>(producer);
    settings.keySet().retainAll(AdminClientConfig.configNames());
    return OPEN.computeIfAbsent(settings, OutputTopics::new);
  }

  /** Kafka's latest answer about one topic. */
  public static final class Known {
    private final String name;
    private volatile boolean isDecided;
    private volatile String trouble;
    private volatile int limit = Integer.MAX_VALUE;
    /** Time of {@link System#nanoTime} since when Kafka misses the topic; null: it does not. */
    private Long missingSince;

    private Known(String name) {
      this.name = name;
      if (!Topic.isValid(name)) {
        decide("is not a valid name for a topic: letters, digits, '.', '_' and '-', 249 at most");
      } else if (Topic.isInternal(name)) {
        decide("is one of Kafka's own, which nobody else may write");
      }
    }

    /** Why Kafka takes no record for the topic, in one line that names it; null: it takes records. */
    public String trouble() {
      return trouble;
    }

    /** Bytes of the largest batch of records that the topic takes; the greatest integer if Kafka does not tell. */
    public int limit() {
      return limit;
    }

    private void decide(String fault) {
      String shown = name.length() > MOST_SHOWN ? name.substring(0, MOST_SHOWN) + "..." : name;
      trouble = fault == null ? null : "topic '%s' %s".formatted(shown, fault);
      isDecided = true;
    }

    private void found(Set<AclOperation> allowed) {
      missingSince = null;
      // A cluster without an authorizer sends all operations or none.
      boolean mayWrite = allowed == null || allowed.isEmpty() || allowed.contains(AclOperation.WRITE)
          || allowed.contains(AclOperation.ALL);
      decide(mayWrite ? null : "is not open to the bridge: grant WRITE on it to the bridge's principal");
    }

    private void refused(KafkaException error, boolean mayWait) {
      if (error instanceof UnknownTopicOrPartitionException) {
        long now = System.nanoTime();
        missingSince = missingSince == null ? now : missingSince;
        if (!mayWait || now - missingSince > MISSING_NANOS) {
          decide("does not exist");
        }
      } else if (error instanceof TopicAuthorizationException) {
        decide("does not exist, or the bridge is not authorised to see it");
      } else if (error instanceof InvalidTopicException) {
        decide("is not a valid name for a topic: " + error.getMessage());
      } else {
        throw error;
      }
    }
  }

  /**
   * What Kafka says of a topic; waits for the first answer, and some seconds more if Kafka does not know the topic.
   *
   * @throws KafkaException Kafka does not answer
   */
  public Known topic(String name) {
    isUsed = true;
    Known known = all.get(name);
    if (known == null && !Topic.isValid(name)) {
      // Not kept: such names come from records, and may be long and many.
      return new Known(name);
    }
    if (known == null) {
      if (all.size() >= MOST_TOPICS) {
        all.clear();
      }
      known = all.computeIfAbsent(name, Known::new);
    }
    if (!known.isDecided) {
      decide(known);
    }
    return known;
  }

  /** Has Kafka asked again soon, since records are on their way. */
  public void use() {
    isUsed = true;
  }

  private void decide(Known known) {
    synchronized (known) {
      boolean mayWait = true;
      while (!known.isDecided) {
        look(List.of(known), mayWait);
        if (!known.isDecided) {
          mayWait = System.nanoTime() - known.missingSince > SOON_MS * 1_000_000 || mayWait();
          if (mayWait) {
            pause(SOON_MS);
          }
        }
      }
    }
  }

  private synchronized boolean mayWait() {
    long earned = (System.nanoTime() - waitsSince) / WAIT_PAUSE_NANOS;
    waits = (int) Math.min(MOST_WAITS, waits + earned);
    waitsSince += earned * WAIT_PAUSE_NANOS;
    return waits > 0 && waits-- > 0;
  }

  private void lookAgain() {
    while (true) {
      pause(LOOK_MS);
      List<Known> valid = all.values().stream().filter(each -> each.isDecided && Topic.isValid(each.name)).toList();
      if (isUsed && !valid.isEmpty()) {
        isUsed = false;
        try {
          look(valid, true);
        } catch (KafkaException away) {
          // The answers before count until Kafka answers again.
          isUsed = true;
        }
      }
    }
  }

  /** Asks Kafka once about topics. */
  private void look(Collection<Known> topics, boolean mayWait) {
    List<String> names = topics.stream().map(each -> each.name).toList();
    Map<String, KafkaFuture<TopicDescription>> described = admin.describeTopics(
        names, new DescribeTopicsOptions().includeAuthorizedOperations(true).timeoutMs(ANSWER_MS)).topicNameValues();
    Map<ConfigResource, KafkaFuture<Config>> settings = admin.describeConfigs(
        names.stream().map(OutputTopics::resource).toList(), new DescribeConfigsOptions().timeoutMs(ANSWER_MS)).values();
    for (Known topic : topics) {
      try {
        Config config = settings.get(resource(topic.name)).get();
        topic.limit = Integer.parseInt(config.get(TopicConfig.MAX_MESSAGE_BYTES_CONFIG).value());
      } catch (ExecutionException refused) {
        // Missing, or without the right DESCRIBE_CONFIGS; then only the broker knows the limit.
        topic.limit = Integer.MAX_VALUE;
      } catch (InterruptedException interrupted) {
        throw new InterruptException(interrupted);
      }
      try {
        topic.found(described.get(topic.name).get().authorizedOperations());
      } catch (ExecutionException refused) {
        topic.refused(kafka(refused), mayWait);
      } catch (InterruptedException interrupted) {
        throw new InterruptException(interrupted);
      }
    }
  }

  private static KafkaException kafka(ExecutionException refused) {
    return refused.getCause() instanceof KafkaException known ? known : new KafkaException(refused.getCause());
  }

  private static ConfigResource resource(String topic) {
    return new ConfigResource(ConfigResource.Type.TOPIC, topic);
  }

  private static void pause(long milliseconds) {
    try {
      Thread.sleep(milliseconds);
    } catch (InterruptedException interrupted) {
      throw new InterruptException(interrupted);
    }
  }
}
