package jmsbridge.predicate;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.unsafe.types.UTF8String;

/** Rules by the beginning that they require of a field's text: a tree of bytes, walked once along the text. */
final class PrefixIndex implements Index {
  private final int field;
  private final Node root = new Node();
  private int lowest = Integer.MAX_VALUE;

  private static final class Node {
    final Map<Byte, Node> longer = new HashMap<>();
    int[] rules = {};
  }

  PrefixIndex(int field) {
    this.field = field;
  }

  /** Adds a rule, whose number is higher than those of all rules before. */
  void add(UTF8String prefix, int rule) {
    lowest = Math.min(lowest, rule);
    Node node = root;
    for (byte letter : prefix.getBytes()) {
      node = node.longer.computeIfAbsent(letter, unused -> new Node());
    }
    node.rules = Arrays.copyOf(node.rules, node.rules.length + 1);
    node.rules[node.rules.length - 1] = rule;
  }

  @Override
  public int first(Fields fields, int before, RuleList rules) {
    Value value = fields.value(field);
    UTF8String text = value == null ? null : value.text();
    int first = before;
    Node node = text == null ? null : root;
    for (int index = 0; node != null; index++) {
      first = rules.first(node.rules, first, fields);
      node = index < text.numBytes() ? node.longer.get(text.getByte(index)) : null;
    }
    return first;
  }

  @Override
  public int lowest() {
    return lowest;
  }

  @Override
  public boolean readsBody() {
    return field < 0;
  }
}
