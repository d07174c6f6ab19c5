package jmsbridge.predicate;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.DoubleStream;

/**
 * Rules by the range in which they require a field's number: a tree over the ranges, walked from a leaf to its root.
 *
 * <p>The leaves are the bounds of all ranges, and the gaps before, between and behind them. A rule is at the few nodes
 * whose leaves together are its range (a segment tree), so the memory grows with the number of rules times its
 * logarithm.
 */
final class RangeIndex implements Index {
  private final int field;
  private final double[] bounds;
  /** Rules of each node, in order: the children of node n are 2n and 2n + 1, the leaves are the second half. */
  private final int[][] nodes;
  private final int leaves;
  private final int lowest;

  /** Range, bounds included, in which a rule requires the number; a bound may be infinite. */
  record Range(double low, double high, int rule) {}

  /** Makes the index of a field; the ranges are in the order of their rules. */
  RangeIndex(int field, List<Range> ranges) {
    this.field = field;
    lowest = ranges.get(0).rule;
    bounds = ranges.stream().flatMapToDouble(each -> DoubleStream.of(each.low + 0.0, each.high + 0.0))
        .filter(Double::isFinite).sorted().distinct().toArray();
    leaves = 2 * bounds.length + 1;
    List<List<Integer>> rules = new ArrayList<>();
    for (int node = 0; node < 2 * leaves; node++) {
      rules.add(new ArrayList<>());
    }
    for (Range range : ranges) {
      int end = leaf(range.high) + leaves + 1;
      for (int start = leaf(range.low) + leaves; start < end; start >>= 1, end >>= 1) {
        if ((start & 1) == 1) {
          rules.get(start++).add(range.rule);
        }
        if ((end & 1) == 1) {
          rules.get(--end).add(range.rule);
        }
      }
    }
    nodes = rules.stream().map(RuleList::ints).toArray(int[][]::new);
  }

  /** The leaf of a number: 2n + 1 for bound n, 2n for the gap before it. */
  private int leaf(double number) {
    int low = 0;
    int high = bounds.length;
    while (low < high) {
      int middle = low + high >>> 1;
      if (bounds[middle] < number) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low < bounds.length && bounds[low] == number ? 2 * low + 1 : 2 * low;
  }

  @Override
  public int first(Fields fields, int before, RuleList rules) {
    Value value = fields.value(field);
    Value number = value == null ? null : value.number();
    if (number == null || Double.isNaN(number.asDouble())) {
      return before;
    }
    int first = before;
    for (int node = leaf(number.asDouble()) + leaves; node > 0; node >>= 1) {
      first = rules.first(nodes[node], first, fields);
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
