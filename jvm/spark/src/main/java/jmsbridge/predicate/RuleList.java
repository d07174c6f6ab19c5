package jmsbridge.predicate;

import java.util.ArrayList;
import java.util.List;

/** List of rules in their order, each with its number: its place in the list. */
final class RuleList {
  private final List<Rule> rules = new ArrayList<>();

  private record Rule(Condition include, Condition exclude) {
    boolean wants(Fields fields) {
      return (include == null || include.of(fields) == Truth.TRUE)
          && (exclude == null || exclude.of(fields) != Truth.TRUE);
    }
  }

  /** Adds a rule. Include is null if its texts are its only requirement; exclude if it excludes nothing. */
  void add(Condition include, Condition exclude) {
    rules.add(new Rule(include, exclude));
  }

  int size() {
    return rules.size();
  }

  /**
   * The first of these rules, which are in order, that is before `before`, is not left out and accepts the record; else
   * `before`.
   */
  int first(int[] numbers, int before, Fields fields) {
    for (int number : numbers) {
      if (number >= before) {
        break;
      }
      if (number > fields.after() && rules.get(number).wants(fields)) {
        return number;
      }
    }
    return before;
  }

  static int[] ints(List<Integer> numbers) {
    return numbers.stream().mapToInt(Integer::intValue).toArray();
  }
}
