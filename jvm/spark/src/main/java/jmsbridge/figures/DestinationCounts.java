package jmsbridge.figures;

import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.Collectors;

/** Counts of rows by the destination of their message, in bounded memory: senders choose the texts. */
final class DestinationCounts {
  private static final int MOST = 100;
  private static final int LONGEST = 200;

  private final Map<String, LongAdder> counts = new ConcurrentHashMap<>();
  private final LongAdder others = new LongAdder();

  void add(String destination) {
    String known = destination == null ? "" : destination.substring(0, Math.min(destination.length(), LONGEST));
    LongAdder count = counts.get(known);
    if (count == null) {
      count = counts.size() < MOST ? counts.computeIfAbsent(known, any -> new LongAdder()) : others;
    }
    count.increment();
  }

  /** The counts as JSON members: destinations, each as base64 with its count, and those beyond the bound together. */
  String read() {
    String known = counts.entrySet().stream()
        .map(each -> "[\"" + encoded(each.getKey()) + "\"," + each.getValue() + "]")
        .collect(Collectors.joining(",", "[", "]"));
    return "\"destinations\":" + known + ",\"elsewhere\":" + others;
  }

  private static String encoded(String text) {
    return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
  }
}
