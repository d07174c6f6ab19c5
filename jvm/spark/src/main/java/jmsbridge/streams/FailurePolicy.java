package jmsbridge.streams;

import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Collectors;

/** What happens with a record that cannot be read, or for which an expression fails. Python names it in lower case. */
enum FailurePolicy {
  /** It ends the topology with an error. */
  STOP,
  /** It is counted and passed over. */
  SKIP,
  /** It goes to the dead-letter topic, with the reason in headers. */
  DEAD_LETTER;

  /** The policy of that name, such as {@code dead-letter}; IllegalArgumentException if there is none. */
  static FailurePolicy of(String name) {
    return Arrays.stream(values()).filter(each -> each.toString().equals(name)).findFirst().orElseThrow(
        () -> new IllegalArgumentException("on_failure is '%s', but has to be one of %s".formatted(
            name, Arrays.stream(values()).map(FailurePolicy::toString).collect(Collectors.joining(", ")))));
  }

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT).replace('_', '-');
  }
}
