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
import org.apache.kafka.common.utils.Utils;
import org.apache.spark.unsafe.types.UTF8String;

/** What a record has to have to be found, from the JSON of {@code engine/find/scanner.py}; one thread uses an object. */
final class Criteria {
  private final long since;
  private final long until;
  private final ByteBuffer key;
  private final BytesSearch text;
  private final List<HeaderTest> headerTests = new ArrayList<>();
  /** Filters of which one has to take the record; empty: none is needed. */
  private final List<RecordFilter> filters = new ArrayList<>();
  private final boolean asksForHeaders;
  private final boolean asksForBody;
  private final HeaderArray headers = new HeaderArray();

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
      for (int place : places.at()) {
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
    json.get("filters").forEach(each -> filters.add(new RecordFilter(each.toString())));
    asksForHeaders = !headerTests.isEmpty() || !filters.isEmpty();
    asksForBody = filters.stream().anyMatch(RecordFilter::asksForBody);
  }

  boolean take(ConsumerRecord<ByteBuffer, ByteBuffer> record) {
    if (record.timestamp() < since || record.timestamp() >= until || key != null && !key.equals(record.key())) {
      return false;
    }
    if (text != null && !text.isIn(record.value())) {
      return false;
    }
    if (!asksForHeaders) {
      return true;
    }
    headers.set(record.headers().toArray());
    for (HeaderTest test : headerTests) {
      if (!test.passes(headers)) {
        return false;
      }
    }
    return filters.isEmpty() || isTaken(record);
  }

  private boolean isTaken(ConsumerRecord<ByteBuffer, ByteBuffer> record) {
    byte[] body = asksForBody && record.value() != null ? Utils.toArray(record.value()) : null;
    for (RecordFilter filter : filters) {
      if (filter.takes(headers, body)) {
        return true;
      }
    }
    return false;
  }

  private static byte[] bytes(JsonNode text) {
    return text.isNull() ? null : text.asText().getBytes(StandardCharsets.UTF_8);
  }

  private static Set<UTF8String> texts(JsonNode json) {
    Set<UTF8String> found = new HashSet<>();
    json.forEach(each -> found.add(UTF8String.fromString(each.asText())));
    return found;
  }
}
