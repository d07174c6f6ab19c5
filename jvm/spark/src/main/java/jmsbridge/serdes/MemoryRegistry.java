package jmsbridge.serdes;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/** Registry in memory, for tests of topologies; it takes every schema. */
public final class MemoryRegistry implements SchemaRegistry {
  private static final long serialVersionUID = 1L;
  private static final Map<Integer, MemoryRegistry> ALL = new ConcurrentHashMap<>();
  private static final AtomicInteger COUNT = new AtomicInteger();

  private final int number = COUNT.incrementAndGet();
  private final transient List<Typed> schemas = new ArrayList<>();
  private final transient Map<String, List<Integer>> subjects = new LinkedHashMap<>();

  public MemoryRegistry() {
    ALL.put(number, this);
  }

  /** Forgets the registry. */
  public void close() {
    ALL.remove(number);
  }

  @Override
  public synchronized Typed typed(int id) {
    if (id < 1 || id > schemas.size()) {
      throw new UnfitValueException("the schema registry knows no schema with the id %d".formatted(id));
    }
    return schemas.get(id - 1);
  }

  @Override
  public synchronized SchemaText schema(String type, int id) {
    if (id < 1 || id > schemas.size() || !schemas.get(id - 1).type().equals(type)) {
      throw new UnfitValueException("the schema registry has no %s schema with the id %d".formatted(type, id));
    }
    return schemas.get(id - 1).schema();
  }

  @Override
  public synchronized Version version(String type, String subject, int version) {
    List<Integer> ids = subjects.getOrDefault(subject, List.of());
    if (version > ids.size() || ids.isEmpty()) {
      throw new RegistryException(
          "the schema registry has no subject '%s' with %s".formatted(subject,
              version == 0 ? "a version" : "the version " + version), null);
    }
    int number = version == 0 ? ids.size() : version;
    int id = ids.get(number - 1);
    return new Version(number, id, schema(type, id));
  }

  @Override
  public synchronized int register(String type, String subject, SchemaText schema) {
    Typed entry = new Typed(type, schema);
    if (!schemas.contains(entry)) {
      schemas.add(entry);
    }
    int id = schemas.indexOf(entry) + 1;
    List<Integer> ids = subjects.computeIfAbsent(subject, any -> new ArrayList<>());
    if (!ids.contains(id)) {
      ids.add(id);
    }
    return id;
  }

  @Override
  public synchronized int lookUp(String type, String subject, SchemaText schema) {
    int id = schemas.indexOf(new Typed(type, schema)) + 1;
    if (!subjects.getOrDefault(subject, List.of()).contains(id)) {
      throw new RegistryException("the schema is not a version of the subject '%s'".formatted(subject), null);
    }
    return id;
  }

  private Object readResolve() {
    return ALL.get(number);
  }
}
