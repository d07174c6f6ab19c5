package jmsbridge.predicate;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Ordered table of rules, as a function from a record's headers to the first rule that accepts the record.
 *
 * <p>Rules that require certain texts are looked up by the hash of these texts, however many rules there are. All other
 * rules, and the remaining conditions of rules, are tried one by one. No code is generated, so a thousand rules start
 * as quickly as one.
 */
public final class RouteTable implements ScalarFunction<Integer> {
  private static final long serialVersionUID = 1L;
  private static final int KEPT = 256;
  /** Recently used tables by name: each task that Spark starts looks its table up again. */
  private static final Map<String, RouteTable> TABLES = new LinkedHashMap<>(16, 0.75f, true) {
    private static final long serialVersionUID = 1L;

    @Override
    protected boolean removeEldestEntry(Map.Entry<String, RouteTable> eldest) {
      return size() > KEPT;
    }
  };

  private final String name;
  private final String json;
  private final transient Fields.Names names;
  private final transient List<Rule> rules = new ArrayList<>();
  private final transient List<Keyed> keyed = new ArrayList<>();
  /** Numbers of the rules that require no texts, in order. */
  private final transient int[] others;

  /** Conditions of a rule. Include is null if its texts are its only requirement; exclude if it excludes nothing. */
  private record Rule(Condition include, Condition exclude) {
    boolean wants(Fields fields) {
      return (include == null || include.of(fields) == Truth.TRUE)
          && (exclude == null || exclude.of(fields) != Truth.TRUE);
    }
  }

  /** Rules that require texts of the same fields: their numbers in order, by these texts. */
  private record Keyed(int[] fields, Map<List<UTF8String>, int[]> rules) {
    int[] find(Fields values) {
      UTF8String[] texts = new UTF8String[fields.length];
      for (int at = 0; at < fields.length; at++) {
        Value value = values.value(fields[at]);
        texts[at] = value == null ? null : value.text();
        if (texts[at] == null) {
          return null;
        }
      }
      return rules.get(Arrays.asList(texts));
    }
  }

  /** The table of that name, made from the JSON of {@code routes/predicate/columns.py} if it does not exist yet. */
  public static RouteTable put(String name, String json) {
    synchronized (TABLES) {
      return TABLES.computeIfAbsent(name, unused -> new RouteTable(name, json));
    }
  }

  /** The table of that name; null if there is none. */
  static RouteTable get(String name) {
    synchronized (TABLES) {
      return TABLES.get(name);
    }
  }

  private RouteTable(String name, String json) {
    this.name = name;
    this.json = json;
    try {
      JsonNode table = new ObjectMapper().readTree(json);
      names = new Fields.Names(table.get("fields"));
      others = read(table.get("rules"));
    } catch (JsonProcessingException error) {
      throw new IllegalArgumentException(error);
    }
  }

  private int[] read(JsonNode found) {
    List<Integer> unkeyed = new ArrayList<>();
    Map<List<Integer>, Map<List<UTF8String>, List<Integer>>> byFields = new LinkedHashMap<>();
    for (JsonNode rule : found) {
      int number = rules.size();
      rules.add(new Rule(condition(rule.get("include")), condition(rule.get("exclude"))));
      if (!rule.hasNonNull("keys")) {
        unkeyed.add(number);
        continue;
      }
      for (JsonNode key : rule.get("keys")) {
        List<Integer> fields = new ArrayList<>();
        List<UTF8String> texts = new ArrayList<>();
        for (JsonNode pair : key) {
          fields.add(pair.get(0).intValue());
          texts.add(UTF8String.fromString(pair.get(1).asText()));
        }
        byFields.computeIfAbsent(fields, unused -> new HashMap<>())
            .computeIfAbsent(texts, unused -> new ArrayList<>())
            .add(number);
      }
    }
    byFields.forEach((fields, numbers) -> {
      Map<List<UTF8String>, int[]> tries = new HashMap<>();
      numbers.forEach((texts, list) -> tries.put(texts, ints(list)));
      keyed.add(new Keyed(ints(fields), tries));
    });
    return ints(unkeyed);
  }

  private static Condition condition(JsonNode node) {
    return node == null || node.isNull() ? null : Condition.read(node);
  }

  private static int[] ints(List<Integer> numbers) {
    return numbers.stream().mapToInt(Integer::intValue).toArray();
  }

  /** Index of the first rule whose include is true and whose exclude is not; null if there is none. */
  public Integer invoke(ArrayData headers) {
    Fields fields = new Fields(names, headers);
    int first = rules.size();
    for (Keyed each : keyed) {
      int[] tries = each.find(fields);
      first = tries == null ? first : first(tries, first, fields);
    }
    first = first(others, first, fields);
    return first == rules.size() ? null : Integer.valueOf(first);
  }

  private int first(int[] numbers, int before, Fields fields) {
    for (int number : numbers) {
      if (number >= before) {
        break;
      }
      if (rules.get(number).wants(fields)) {
        return number;
      }
    }
    return before;
  }

  @Override
  public DataType[] inputTypes() {
    DataType header = DataTypes.createStructType(List.of(
        DataTypes.createStructField("key", DataTypes.StringType, true),
        DataTypes.createStructField("value", DataTypes.BinaryType, true)));
    return new DataType[] {DataTypes.createArrayType(header)};
  }

  @Override
  public DataType resultType() {
    return DataTypes.IntegerType;
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public String canonicalName() {
    return "jmsbridge." + name;
  }

  @Override
  public String toString() {
    return name;
  }

  private Object readResolve() {
    return put(name, json);
  }
}
