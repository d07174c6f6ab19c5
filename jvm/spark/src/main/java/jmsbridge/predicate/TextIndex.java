package jmsbridge.predicate;

import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.unsafe.types.UTF8String;

/** Rules by the texts that they require of the same fields: one look-up by hash, however many rules there are. */
final class TextIndex implements Index {
  /** Fields, and behind them paths into the body as negative numbers. */
  private final int[] fields;
  /** Number of fields before the first path, and what the rules require of these; null if there are no paths. */
  private final int headers;
  private final Set<List<UTF8String>> heads;
  /** Entries at the place of their hash or behind it, with null at the end of each run; the size is a power of two. */
  private final Entry[] entries;
  private final int lowest;

  /** Rules, in order, that require these texts. */
  private record Entry(int hash, UTF8String[] texts, int[] rules) {}

  TextIndex(List<Integer> fields, Map<List<UTF8String>, List<Integer>> rules) {
    this.fields = RuleList.ints(fields);
    headers = (int) fields.stream().filter(field -> field >= 0).count();
    heads = headers == 0 || headers == fields.size() ? null : new HashSet<>();
    entries = new Entry[Integer.highestOneBit(rules.size()) * 4];
    lowest = rules.values().stream().mapToInt(numbers -> numbers.get(0)).min().orElseThrow();
    rules.forEach((texts, numbers) -> add(texts.toArray(UTF8String[]::new), RuleList.ints(numbers)));
  }

  private void add(UTF8String[] texts, int[] rules) {
    int hash = hash(texts);
    int slot = hash & entries.length - 1;
    while (entries[slot] != null) {
      slot = slot + 1 & entries.length - 1;
    }
    entries[slot] = new Entry(hash, texts, rules);
    if (heads != null) {
      heads.add(List.of(Arrays.copyOf(texts, headers)));
    }
  }

  private static int hash(UTF8String[] texts) {
    int hash = 0;
    for (UTF8String text : texts) {
      hash = hash * 31 + text.hashCode();
    }
    return hash;
  }

  @Override
  public int first(Fields values, int before, RuleList rules) {
    UTF8String[] texts = new UTF8String[fields.length];
    for (int index = 0; index < fields.length; index++) {
      if (index == headers && heads != null && !heads.contains(Arrays.asList(texts).subList(0, headers))) {
        return before;
      }
      Value value = values.value(fields[index]);
      texts[index] = value == null ? null : value.text();
      if (texts[index] == null) {
        return before;
      }
    }
    int hash = hash(texts);
    int slot = hash & entries.length - 1;
    for (Entry entry = entries[slot]; entry != null; entry = entries[slot]) {
      if (entry.hash == hash && Arrays.equals(entry.texts, texts)) {
        return rules.first(entry.rules, before, values);
      }
      slot = slot + 1 & entries.length - 1;
    }
    return before;
  }

  @Override
  public int lowest() {
    return lowest;
  }

  @Override
  public boolean readsBody() {
    return headers < fields.length;
  }
}
