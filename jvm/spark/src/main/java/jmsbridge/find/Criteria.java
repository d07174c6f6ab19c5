package jmsbridge.find;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import jmsbridge.kafka.HeaderArray;
import jmsbridge.predicate.RecordFilter;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.utils.Utils;
import org.apache.spark.unsafe.types.UTF8String;

/** What a record has to have to be found, from JSON of {@code engine/find/scanner.py}; one thread uses an object. */
final class Criteria {
  private final long since;
  private final long until;
  private final ByteBuffer key;
  private final BytesSearch text;
  private final List<HeaderTest> headerTests = new ArrayList<>();
  /** Filter that has to take the record; null: none has. */
  private final RecordFilter filter;
  private final Styles styles;
  private final HeaderArray headers = new HeaderArray();
  /** The headers in the style of the journal, if they have another one. */
  private final HeaderArray plainHeaders = new HeaderArray();

  /** Test whether a header of one of the names has one of the values. */
  private static final class HeaderTest {
    private final Set<UTF8String> names;
    private final Set<UTF8String> values;
    private HeaderArray.Places places = new HeaderArray.Places(null, new int[0]);

    HeaderTest(JsonNode json) {
      names = texts(json.get("names"));
      values = texts(json.get("values"));
    }

    boolean passes(HeaderArray headers) {
      if (!places.isOf(headers)) {
        places = headers.find(names);
      }
      for (int place : places.indexes()) {
        UTF8String value = headers.text(place);
        if (value != null && values.contains(value)) {
          return true;
        }
      }
      return false;
    }
  }

  Criteria(JsonNode json) {
    since = json.get("since").asLong(Long.MIN_VALUE);
    until = json.get("until").asLong(Long.MAX_VALUE);
    byte[] wantedKey = bytes(json.get("key"));
    key = wantedKey == null ? null : ByteBuffer.wrap(wantedKey);
    byte[] wantedText = bytes(json.get("text"));
    text = wantedText == null ? null : new BytesSearch(wantedText);
    json.get("headers").forEach(each -> headerTests.add(new HeaderTest(each)));
    filter = json.get("filter").isNull() ? null : new RecordFilter(json.get("filter").asText());
    styles = new Styles(json.get("styles"));
  }

  boolean take(ConsumerRecord<ByteBuffer, ByteBuffer> record) {
    if (record.timestamp() < since || record.timestamp() >= until || key != null && !key.equals(record.key())) {
      return false;
    }
    if (text != null && !text.isIn(record.value())) {
      return false;
    }
    if (headerTests.isEmpty() && filter == null) {
      return true;
    }
    Header[] given = record.headers().toArray();
    headers.set(given);
    for (HeaderTest test : headerTests) {
      if (!test.passes(headers)) {
        return false;
      }
    }
    return filter == null || isTaken(record, given);
  }

  private boolean isTaken(ConsumerRecord<ByteBuffer, ByteBuffer> record, Header[] given) {
    byte[] body = filter.asksForBody() && record.value() != null ? Utils.toArray(record.value()) : null;
    Header[] plain = styles.plain(headers, given);
    if (plain == given) {
      return filter.takes(headers, body);
    }
    plainHeaders.set(plain);
    return filter.takes(plainHeaders, body);
  }

  private static byte[] bytes(JsonNode text) {
    return text.isNull() ? null : text.asText().getBytes(StandardCharsets.UTF_8);
  }

  private static Set<UTF8String> texts(JsonNode json) {
    Set<UTF8String> names = new HashSet<>();
    json.forEach(each -> names.add(UTF8String.fromString(each.asText())));
    return names;
  }
}
