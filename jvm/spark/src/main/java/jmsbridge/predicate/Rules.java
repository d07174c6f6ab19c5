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
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Ordered rules, made from the JSON of {@code routes/predicate/rule_json.py}; unchanging, for any number of threads.
 *
 * <p>Rules that require texts, beginnings of texts or ranges of numbers are found by these, however many rules there
 * are. The others, and the remaining conditions of those that were found, are tried one by one.
 */
final class Rules {
  private static final UTF8String ONLY = UTF8String.fromString("jmsbridge.only");

  final Fields.Names names;
  final BodyPaths paths;
  /** Whether a rule asks for the body. */
  final boolean asksForBody;
  private final RuleList rules = new RuleList();
  /** Indexes of fields, and those that read the body. */
  private final List<Index> indexes = new ArrayList<>();
  private final List<Index> bodyIndexes = new ArrayList<>();
  /** Numbers of the rules that are in no index, in order. */
  private final int[] others;
  /** Publications of each rule, and whether later rules are asked as well; empty where only the first one counts. */
  private final List<Publications> publications = new ArrayList<>();
  private int publicationCount;

  /** Publications of a rule: the number of the first of them, and the label of each. */
  private record Publications(int first, List<UTF8String> labels, boolean goesOn) {}

  Rules(String json) {
    JsonNode table;
    try {
      table = new ObjectMapper().readTree(json);
    } catch (JsonProcessingException error) {
      throw new IllegalArgumentException(error);
    }
    names = new Fields.Names(table.get("fields"));
    paths = new BodyPaths(table.get("paths"));
    asksForBody = table.get("body").booleanValue();
    Map<List<Integer>, Map<List<UTF8String>, List<Integer>>> texts = new LinkedHashMap<>();
    Map<Integer, PrefixIndex> prefixes = new LinkedHashMap<>();
    Map<Integer, List<RangeIndex.Range>> ranges = new LinkedHashMap<>();
    List<Integer> unfound = new ArrayList<>();
    for (JsonNode rule : table.get("rules")) {
      int number = rules.size();
      rules.add(condition(rule.get("include")), condition(rule.get("exclude")));
      if (rule.hasNonNull("labels")) {
        addPublications(rule);
      }
      if (!rule.hasNonNull("requires")) {
        unfound.add(number);
        continue;
      }
      for (JsonNode condition : rule.get("requires")) {
        switch (condition.get(0).asText()) {
          case "TEXTS":
            addTexts(texts, condition.get(1), number);
            break;
          case "PREFIX":
            prefixes.computeIfAbsent(condition.get(1).intValue(), PrefixIndex::new).add(text(condition.get(2)), number);
            break;
          default:
            double low = condition.get(2).asDouble(Double.NEGATIVE_INFINITY);
            double high = condition.get(3).asDouble(Double.POSITIVE_INFINITY);
            ranges.computeIfAbsent(condition.get(1).intValue(), unused -> new ArrayList<>())
                .add(new RangeIndex.Range(low, high, number));
        }
      }
    }
    texts.forEach((parts, found) -> add(new TextIndex(parts, found)));
    prefixes.values().forEach(this::add);
    ranges.forEach((part, found) -> add(new RangeIndex(part, found)));
    others = RuleList.ints(unfound);
  }

  /** Whether records have publications; else only the first rule that accepts one counts. */
  boolean havePublications() {
    return !publications.isEmpty();
  }

  private void addPublications(JsonNode rule) {
    List<UTF8String> labels = new ArrayList<>();
    rule.get("labels").forEach(label -> labels.add(text(label)));
    publications.add(new Publications(publicationCount, labels, rule.get("goesOn").booleanValue()));
    publicationCount += labels.size();
  }

  private void add(Index index) {
    (index.readsBody() ? bodyIndexes : indexes).add(index);
  }

  private static void addTexts(
      Map<List<Integer>, Map<List<UTF8String>, List<Integer>>> found, JsonNode pairs, int rule) {
    List<Integer> fields = new ArrayList<>();
    List<UTF8String> texts = new ArrayList<>();
    for (JsonNode pair : pairs) {
      fields.add(pair.get(0).intValue());
      texts.add(text(pair.get(1)));
    }
    found.computeIfAbsent(fields, unused -> new HashMap<>())
        .computeIfAbsent(texts, unused -> new ArrayList<>())
        .add(rule);
  }

  private static UTF8String text(JsonNode node) {
    return UTF8String.fromString(node.asText());
  }

  private static Condition condition(JsonNode node) {
    return node == null || node.isNull() ? null : Condition.read(node);
  }

  /** Number of the first rule whose include is true and whose exclude is not; null if there is none. */
  Integer first(Fields fields) {
    int first = rules.size();
    for (Index index : indexes) {
      first = index.first(fields, first, rules);
    }
    first = rules.first(others, first, fields);
    for (Index index : bodyIndexes) {
      // A body is read only while a rule that asks for it may be the first.
      first = index.lowest() < first ? index.first(fields, first, rules) : first;
    }
    return first == rules.size() ? null : Integer.valueOf(first);
  }

  /**
   * Numbers of the publications of all rules that take the record: the first rule that accepts it, and, after each that
   * goes on, the next one. A record with the header {@link #ONLY} has at most the publication of that label.
   */
  int[] publications(Fields fields) {
    int[] passed = new int[publicationCount];
    int count = 0;
    UTF8String only = fields.header(ONLY);
    for (Integer rule = first(fields); rule != null; rule = first(fields)) {
      Publications taken = publications.get(rule);
      for (int number = 0; number < taken.labels.size(); number++) {
        if (only == null || only.equals(taken.labels.get(number))) {
          passed[count++] = taken.first + number;
        }
      }
      if (!taken.goesOn) {
        break;
      }
      fields.goOn(rule);
    }
    return Arrays.copyOf(passed, count);
  }
}
