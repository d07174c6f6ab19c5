package jmsbridge.streams;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.ObjectStreamClass;
import java.io.Serializable;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/** Program of a topology, as each task gets a copy of it: the nodes, linked, parents first. */
public final class Program implements TopologyFacts, Serializable {
  private static final long serialVersionUID = 1L;

  private final PythonCode python;
  private final String name;
  private final FailurePolicy policy;
  private final String deadLetters;
  private final Map<String, Node> nodes = new LinkedHashMap<>();
  private final Map<String, Steps.Source> sources = new LinkedHashMap<>();
  private final Map<String, Projection> shown = new HashMap<>();
  /** Number of internal topics that records pass, one after the other, before they reach a node. */
  private final Map<String, Integer> levels = new HashMap<>();

  /** Creates a program without nodes. */
  Program(String name, FailurePolicy policy, String deadLetters, PythonCode python) {
    this.name = name;
    this.policy = policy;
    this.deadLetters = deadLetters;
    this.python = python;
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public FailurePolicy policy() {
    return policy;
  }

  @Override
  public String deadLetters() {
    return deadLetters;
  }

  @Override
  public boolean isInternal(String topic) {
    Steps.Source source = sources.get(topic);
    return source != null && source.isInternal();
  }

  PythonCode python() {
    return python;
  }

  Collection<Node> nodes() {
    return nodes.values();
  }

  Node node(String of) {
    return nodes.get(of);
  }

  /** Adds a node, which gets the records of each parent at a port of its own. */
  void add(Node node, String... parents) {
    for (Node each : nodes.values()) {
      if (node instanceof StatefulNode && StatefulNode.number(each.name) == StatefulNode.number(node.name)) {
        throw new IllegalArgumentException(
            "its state would be that of '%s': give one of them another name".formatted(each.name));
      }
    }
    nodes.put(node.name, node);
    levels.put(node.name, 0);
    for (int port = 0; port < parents.length; port++) {
      nodes.get(parents[port]).link(node, port);
      levels.merge(node.name, levels.get(parents[port]), Math::max);
    }
  }

  /** Has a node that was added read its topic. */
  void read(Steps.Source source) {
    sources.put(source.topic, source);
  }

  /** Milliseconds by which records of a topic may be later than the clock; below 0: any number. */
  long maxAhead(String topic) {
    Steps.Source source = sources.get(topic);
    return source == null ? -1 : source.maxAhead;
  }

  /** Has a node that was added read the internal topic that another one writes. */
  void read(Steps.Source source, String writer) {
    read(source);
    levels.put(source.name, levels.get(writer) + 1);
  }

  /** Has the clock move a node on as well; before the program is copied to tasks. */
  public void followClock(String node) {
    stateful(node).followClock();
  }

  boolean followsClock() {
    return nodes.values().stream().anyMatch(Program::followsClock);
  }

  private static boolean followsClock(Node node) {
    return node instanceof StatefulNode stateful && stateful.followsClock();
  }

  /** The most internal topics that records pass before they reach a node which follows the clock. */
  int clockLevels() {
    return nodes.values().stream().filter(Program::followsClock).mapToInt(each -> levels.get(each.name)).max().orElse(0);
  }

  Node source(String topic) {
    return sources.get(topic);
  }

  /** Begins to fetch what is needed to read records of a topic. */
  void expect(String topic, List<ConsumerRecord<byte[], byte[]>> records) {
    sources.get(topic).expect(records);
  }

  List<GlobalTable> globalTables() {
    return nodes.values().stream().filter(GlobalTable.class::isInstance).map(GlobalTable.class::cast).toList();
  }

  /** The node of that name, which keeps state; IllegalArgumentException if there is none. */
  StatefulNode stateful(String node) {
    if (nodes.get(node) instanceof StatefulNode stateful) {
      return stateful;
    }
    throw new IllegalArgumentException("no node '%s' keeps state; these do: %s".formatted(node, statefulNames()));
  }

  /** Names of the nodes with entries of their own in the store. */
  public List<String> statefulNames() {
    return nodes.values().stream().filter(StatefulNode.class::isInstance).map(each -> each.name).toList();
  }

  /** Sets the number under which a node keeps its entries; before the program is copied to tasks. */
  public void keepUnder(String node, int number) {
    stateful(node).keepUnder(number);
  }

  /** The bytes of JSON of what a node shows of its state. */
  Projection shown(String node) {
    return shown.get(node);
  }

  void show(String node, Projection json) {
    shown.put(node, json);
  }

  /** True for a topic without which the program cannot work: one that it reads or always writes to. */
  boolean needs(String topic) {
    return topic.equals(deadLetters) || sources.containsKey(topic)
        || nodes.values().stream().anyMatch(each -> each instanceof Steps.Sink sink && topic.equals(sink.topic()));
  }

  /** A copy with nodes of its own, as a task needs it. */
  Program copy() {
    ClassLoader loader = getClass().getClassLoader();
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
      out.writeObject(this);
      try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray())) {
        @Override
        protected Class<?> resolveClass(ObjectStreamClass description) throws ClassNotFoundException {
          return Class.forName(description.getName(), false, loader);
        }
      }) {
        return (Program) in.readObject();
      }
    } catch (IOException | ClassNotFoundException failure) {
      throw new IllegalStateException(failure);
    }
  }
}
