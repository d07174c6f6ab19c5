package jmsbridge.kafka;

import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Properties of a record under another spelling of their names, as the record's header {@code jmsbridge.names} gives
 * it; {@code Message.lookup} in {@code engine/message.py} does the same. One thread uses an object for many records.
 */
public final class Spellings {
  /** The header that gives the spellings. */
  public static final UTF8String HEADER = UTF8String.fromString("jmsbridge.names");
  private static final UTF8String PREFIX = UTF8String.fromString("jms.");

  private HeaderArray.Place place;
  /** Text of the header in the record before, and what it says: headers of properties by the spelled ones. */
  private UTF8String text;
  private Map<UTF8String, UTF8String> headers = Map.of();

  /** Text of the header that {@code wanted}, which the record does not have, is another spelling of; null for none. */
  public UTF8String find(ArrayData record, UTF8String wanted) {
    UTF8String spelled = wanted.startsWith(PREFIX) ? names(record) : null;
    if (spelled == null) {
      return null;
    }
    if (!spelled.equals(text)) {
      headers = read(spelled);
      text = spelled.clone();
    }
    UTF8String header = headers.get(wanted);
    return header == null ? null : text(record, header);
  }

  private UTF8String names(ArrayData record) {
    if (!(record instanceof HeaderArray headers)) {
      return text(record, HEADER);
    }
    if (place == null || !place.isOf(headers)) {
      place = headers.find(HEADER);
    }
    return headers.text(place.index());
  }

  private static UTF8String text(ArrayData record, UTF8String name) {
    if (record instanceof HeaderArray headers) {
      return headers.text(headers.find(name).index());
    }
    for (int index = 0; record != null && index < record.numElements(); index++) {
      InternalRow header = record.getStruct(index, 2);
      if (name.equals(header.getUTF8String(0))) {
        return header.isNullAt(1) ? null : UTF8String.fromBytes(header.getBinary(1));
      }
    }
    return null;
  }

  /** Headers of properties by the spelled ones, in the order of the header's text. */
  public static Map<UTF8String, UTF8String> read(UTF8String text) {
    Map<UTF8String, UTF8String> declared = new LinkedHashMap<>();
    for (String pair : text.toString().split(",", -1)) {
      String[] names = pair.split("=", -1);
      if (names.length == 2) {
        declared.putIfAbsent(header(names[0]), header(names[1]));
      }
    }
    return declared;
  }

  /** The header of a property, whose name is percent-encoded as in the headers of names and of types. */
  public static UTF8String header(String encoded) {
    String name = encoded;
    try {
      // Percent signs alone are encoded: a plus sign means itself.
      name = encoded.indexOf('%') < 0 ? name : URLDecoder.decode(name.replace("+", "%2B"), StandardCharsets.UTF_8);
    } catch (IllegalArgumentException unencoded) {
      // Not written by a bridge: the name means itself.
    }
    return UTF8String.fromString(PREFIX + name);
  }
}
