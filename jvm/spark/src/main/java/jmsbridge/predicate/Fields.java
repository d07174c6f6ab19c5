package jmsbridge.predicate;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import jmsbridge.kafka.HeaderArray;
import jmsbridge.kafka.Spellings;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.unsafe.types.UTF8String;

/** Values of one record for predicates: the headers are searched once, values are parsed when they are first used. */
final class Fields {
  private static final UTF8String TYPES = UTF8String.fromString(Declared.HEADER);
  private static final List<UTF8String> PREFIXES =
      List.of(UTF8String.fromString("queue:"), UTF8String.fromString("topic:"));

  /** Fields and properties that the predicates of a table read, by index. */
  static final class Names {
    private final Map<UTF8String, Integer> headers = new HashMap<>(Map.of(TYPES, 0));
    private final List<Field> fields = new ArrayList<>();

    /** Field: index of its header; its type if that is fixed, otherwise its name in the header of types. */
    private record Field(UTF8String headerName, int header, Declared type, String name, boolean isAddress) {}

    Names(JsonNode names) {
      for (JsonNode name : names) {
        UTF8String header = UTF8String.fromString(name.get("header").asText());
        int index = headers.computeIfAbsent(header, unused -> headers.size());
        Declared type = name.hasNonNull("type") ? Declared.BY_NAME.get(name.get("type").asText()) : null;
        fields.add(new Field(header, index, type, name.get("name").asText(), name.get("address").booleanValue()));
      }
    }

    private HeaderArray.Place[] places(HeaderArray record) {
      HeaderArray.Place[] places = new HeaderArray.Place[headers.size()];
      headers.forEach((name, index) -> places[index] = record.find(name));
      return places;
    }

    private Declared[] types(UTF8String text) {
      Declared[] types = new Declared[fields.size()];
      Map<String, Declared> declared = text == null ? Map.of() : Declared.read(text);
      for (int index = 0; index < types.length; index++) {
        Field field = fields.get(index);
        types[index] = field.type != null ? field.type : declared.get(field.name);
      }
      return types;
    }
  }

  /** What was found for the record before, which mostly holds for the next one, too. */
  static final class Recent {
    private Types types = new Types(null, null);
    private HeaderArray.Place[] places = {};
    private final Spellings spellings = new Spellings();

    /** Types of all fields for a text of the header of types, null for none. */
    private record Types(UTF8String text, Declared[] types) {}

    /** Places of the headers of all fields, by index. */
    private HeaderArray.Place[] places(Names names, HeaderArray record) {
      HeaderArray.Place[] known = places;
      if (known.length == 0 || !known[0].isOf(record)) {
        known = names.places(record);
        places = known;
      }
      return known;
    }

    private Declared[] types(Names names, UTF8String text) {
      Types known = types;
      if (known.types == null || !Objects.equals(text, known.text)) {
        known = new Types(text == null ? null : text.clone(), names.types(text));
        types = known;
      }
      return known.types;
    }
  }

  private final Names names;
  private final Recent recent;
  private final ArrayData headers;
  /** The record whose headers are looked up at `places`; null if the texts of all were found before. */
  private final HeaderArray record;
  private final HeaderArray.Place[] places;
  private final UTF8String[] texts;
  private final boolean[] found;
  private final Value[] values;
  private final boolean[] isRead;
  private final Body body;
  private Declared[] types;
  private Value element;
  private int after = -1;

  /**
   * Searches the headers, which may be null; of several headers with one name the first counts. The body is null where
   * no rule asks for it.
   */
  Fields(Names names, Recent recent, ArrayData headers, Body body) {
    this.names = names;
    this.body = body;
    this.recent = recent;
    this.headers = headers;
    texts = headers instanceof HeaderArray ? null : new UTF8String[names.headers.size()];
    found = texts == null ? null : new boolean[texts.length];
    values = new Value[names.fields.size()];
    isRead = new boolean[values.length];
    if (headers instanceof HeaderArray record) {
      this.record = record;
      places = recent.places(names, record);
    } else {
      record = null;
      places = null;
      search(headers);
    }
  }

  private void search(ArrayData headers) {
    for (int position = 0; headers != null && position < headers.numElements(); position++) {
      InternalRow header = headers.getStruct(position, 2);
      Integer index = names.headers.get(header.getUTF8String(0));
      if (index != null && !found[index]) {
        found[index] = true;
        texts[index] = header.isNullAt(1) ? null : HeaderText.of(header);
      }
    }
  }

  /** The value of a field, or of the body under path -1 - index for a negative index; null if the record has none. */
  Value value(int index) {
    if (index < 0) {
      return body.value(-1 - index);
    }
    if (!isRead[index]) {
      values[index] = read(index);
      isRead[index] = true;
    }
    return values[index];
  }

  /** The record's body. */
  Body body() {
    return body;
  }

  /** The number of the rule behind which rules are looked for; -1 for all of them. */
  int after() {
    return after;
  }

  /** Has rules with this number and lower ones be left out. */
  void goOn(int rule) {
    after = rule;
  }

  /** Text of the record's first header of that name, which need not be one of a field; null without one. */
  UTF8String header(UTF8String name) {
    return HeaderText.first(headers, name);
  }

  /** Has conditions look at an element of the body. */
  void look(Value element) {
    this.element = element;
  }

  /** The element of the body that is looked at; null if it has no value. */
  Value element() {
    return element;
  }

  private Value read(int index) {
    Names.Field field = names.fields.get(index);
    UTF8String text = text(field.header);
    if (text == null && !isThere(field.header)) {
      text = recent.spellings.find(headers, field.headerName);
    }
    if (text == null) {
      return null;
    }
    if (types == null) {
      types = recent.types(names, text(0));
    }
    // Invalid UTF-8 is replaced as in Python.
    UTF8String valid = text.isValid() ? text : text.makeValid();
    return Value.read(field.isAddress ? address(valid) : valid, types[index]);
  }

  private UTF8String text(int header) {
    return record == null ? texts[header] : record.text(places[header].index());
  }

  /** Whether there is such a header, which may have no value. */
  private boolean isThere(int header) {
    return record == null ? found[header] : places[header].index() >= 0;
  }

  /** A destination without its kind. */
  static UTF8String address(UTF8String destination) {
    for (UTF8String prefix : PREFIXES) {
      if (destination.startsWith(prefix)) {
        int start = prefix.numBytes();
        return UTF8String.fromBytes(destination.getBytes(), start, destination.numBytes() - start);
      }
    }
    return destination;
  }
}
