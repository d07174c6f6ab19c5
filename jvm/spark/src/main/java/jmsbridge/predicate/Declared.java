package jmsbridge.predicate;

import java.util.Locale;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Declared types of JMS properties, as {@code JmsType} in {@code routes/properties.py}. */
enum Declared {
  BOOLEAN, BYTE(8), SHORT(16), INT(32), LONG(64), FLOAT, DOUBLE, STRING, BYTES;

  /** Types by their names in the header {@code jmsbridge.types}. */
  static final Map<String, Declared> BY_NAME =
      Stream.of(values()).collect(Collectors.toMap(type -> type.name().toLowerCase(Locale.ROOT), Function.identity()));

  /** Bits of an integer type; 0 for all other types. */
  final int bits;

  Declared() {
    this(0);
  }

  Declared(int bits) {
    this.bits = bits;
  }
}
