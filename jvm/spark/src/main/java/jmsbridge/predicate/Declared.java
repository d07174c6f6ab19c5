package jmsbridge.predicate;

import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.unsafe.types.UTF8String;

/** Declared types of JMS properties, as {@code JmsType} in {@code routes/properties.py}. */
enum Declared {
  BOOLEAN, BYTE(8), SHORT(16), INT(32), LONG(64), FLOAT, DOUBLE, STRING, BYTES;

  /** Name of the header that holds the types of a record's properties. */
  static final String HEADER = "jmsbridge.types";

  /** Types by their names in the header {@code jmsbridge.types}. */
  static final Map<String, Declared> BY_NAME =
      Stream.of(values()).collect(Collectors.toMap(Declared::text, Function.identity()));

  /** Bits of an integer type; 0 for all other types. */
  final int bits;

  Declared() {
    this(0);
  }

  Declared(int bits) {
    this.bits = bits;
  }

  /** The type's name in the header. */
  String text() {
    return name().toLowerCase(Locale.ROOT);
  }

  /** Whether it is a numeric type. */
  boolean isNumber() {
    return bits > 0 || this == FLOAT || this == DOUBLE;
  }

  /** Types in the text of the header, by property; of several for a property the first counts. */
  static Map<String, Declared> read(UTF8String text) {
    Map<String, Declared> declared = new LinkedHashMap<>();
    for (String pair : text.toString().split(",", -1)) {
      int end = pair.indexOf('=');
      Declared type = end < 0 ? null : BY_NAME.get(pair.substring(end + 1));
      if (type != null) {
        declared.putIfAbsent(pair.substring(0, end), type);
      }
    }
    return declared;
  }
}
