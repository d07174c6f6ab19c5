package jmsbridge.predicate;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import jmsbridge.kafka.Spellings;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.unsafe.types.UTF8String;

/** Headers of one record while they are edited, with the types and the spellings that two of them declare. */
final class HeaderDraft {
  private static final UTF8String TYPES = UTF8String.fromString(Declared.HEADER);
  private static final String PREFIX = "jms.";
  private static final UTF8String PROPERTIES = UTF8String.fromString(PREFIX);
  /** Beginnings of names that are not a sender's: JMS fields, and the bridge's own. */
  private static final Pattern FIXED = Pattern.compile("JMS(?!_)|jmsbridge|JMS_JmsBridge");

  private final List<Header> headers = new ArrayList<>();
  /** Types by percent-encoded names. */
  private final Map<String, Declared> types;
  /** Headers of properties by other spellings of them. */
  private final Map<UTF8String, UTF8String> spellings;
  private final Map<String, Declared> typesBefore;
  private final Map<UTF8String, UTF8String> spellingsBefore;

  private record Header(UTF8String name, byte[] value) {}

  /** Draft of a record's headers, which may be null. */
  HeaderDraft(ArrayData given) {
    for (int index = 0; given != null && index < given.numElements(); index++) {
      InternalRow header = given.getStruct(index, 2);
      headers.add(new Header(header.getUTF8String(0), header.isNullAt(1) ? null : header.getBinary(1)));
    }
    types = Declared.read(first(TYPES));
    types.keySet().removeIf(name -> !encoded(Spellings.header(name)).equals(name));
    spellings = Spellings.read(first(Spellings.HEADER));
    // No bridge writes another spelling of a JMS field: a sender's leads to none.
    spellings.entrySet().removeIf(pair -> isFixed(pair.getKey()) || isFixed(pair.getValue()));
    typesBefore = Map.copyOf(types);
    spellingsBefore = Map.copyOf(spellings);
  }

  /** The header of a field or property. */
  static UTF8String header(String name) {
    return UTF8String.fromString(PREFIX + name);
  }

  /** Removes the headers that have a name, under any of their spellings, which the pattern matches as a whole. */
  void remove(Pattern pattern) {
    for (Header header : List.copyOf(headers)) {
      if (header.name.startsWith(PROPERTIES) && isMatched(header.name, pattern)) {
        drop(header.name);
      }
    }
  }

  /** Gives a header a new name, and drops another one of that name; the type as {@code HeaderEdits} has it. */
  void rename(UTF8String from, UTF8String to, String type) {
    UTF8String source = resolved(from);
    UTF8String target = resolved(to);
    if (!has(source)) {
      return;
    }
    if (!target.equals(source)) {
      drop(target);
    }
    Declared kind = type == null ? types.get(encoded(source)) : Declared.BY_NAME.get(type);
    forget(source);
    forget(to);
    headers.replaceAll(each -> each.name.equals(source) ? new Header(to, each.value) : each);
    if (kind != null) {
      types.put(encoded(to), kind);
    }
  }

  /** Gives a header a text, or drops it if that is null. */
  void give(UTF8String name, byte[] text) {
    UTF8String target = resolved(name);
    if (text == null || !has(target)) {
      forget(target);
    } else {
      forgetTypes(target);
    }
    headers.removeIf(each -> each.name.equals(target));
    if (text != null) {
      headers.add(new Header(target, text));
    }
  }

  /** The headers, among them those of types and spellings as they are now. */
  ArrayData finish() {
    if (!types.equals(typesBefore)) {
      declare(TYPES, types.entrySet().stream().map(each -> each.getKey() + "=" + each.getValue().text()));
    }
    if (!spellings.equals(spellingsBefore)) {
      Stream<Map.Entry<UTF8String, UTF8String>> pairs = spellings.entrySet().stream();
      declare(Spellings.HEADER, pairs.map(each -> encoded(each.getKey()) + "=" + encoded(each.getValue())));
    }
    Object[] rows = headers.stream()
        .map(each -> new GenericInternalRow(new Object[] {each.name, each.value}))
        .toArray();
    return new GenericArrayData(rows);
  }

  private void declare(UTF8String header, Stream<String> pairs) {
    String text = pairs.collect(Collectors.joining(","));
    headers.removeIf(each -> each.name.equals(header));
    if (!text.isEmpty()) {
      headers.add(new Header(header, text.getBytes(StandardCharsets.UTF_8)));
    }
  }

  /** Text of the first header of this name; empty for none. */
  private UTF8String first(UTF8String name) {
    for (Header header : headers) {
      if (header.name.equals(name)) {
        return header.value == null ? UTF8String.EMPTY_UTF8 : UTF8String.fromBytes(header.value);
      }
    }
    return UTF8String.EMPTY_UTF8;
  }

  private boolean isMatched(UTF8String header, Pattern pattern) {
    return isMatchedAlone(header, pattern)
        || spellings.entrySet().stream()
            .filter(pair -> pair.getKey().equals(header) || pair.getValue().equals(header))
            .anyMatch(pair -> isMatchedAlone(pair.getKey(), pattern) || isMatchedAlone(pair.getValue(), pattern));
  }

  private static boolean isMatchedAlone(UTF8String header, Pattern pattern) {
    return pattern.matcher(name(header)).matches();
  }

  private boolean has(UTF8String name) {
    return headers.stream().anyMatch(each -> each.name.equals(name));
  }

  /** The header that a name stands for. */
  private UTF8String resolved(UTF8String name) {
    UTF8String spelling = spellings.get(name);
    return spelling != null && !has(name) && has(spelling) ? spelling : name;
  }

  private void drop(UTF8String name) {
    forget(name);
    headers.removeIf(each -> each.name.equals(name));
  }

  /** Forgets types and spellings of a header. */
  private void forget(UTF8String name) {
    forgetTypes(name);
    spellings.entrySet().removeIf(pair -> pair.getKey().equals(name) || pair.getValue().equals(name));
  }

  /** Forgets the types of a header under all spellings that no header of its own has. */
  private void forgetTypes(UTF8String name) {
    spellings.forEach((spelling, own) -> {
      if (own.equals(name) && !has(spelling)) {
        types.remove(encoded(spelling));
      }
    });
    types.remove(encoded(name));
  }

  private static boolean isFixed(UTF8String header) {
    return FIXED.matcher(name(header)).lookingAt();
  }

  private static String name(UTF8String header) {
    return header.toString().substring(PREFIX.length());
  }

  /** Name of a header's property as it stands in the headers of types and of names. */
  private static String encoded(UTF8String header) {
    return name(header).replace("%", "%25").replace(",", "%2C").replace("=", "%3D");
  }
}
