package jmsbridge.predicate;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Function;
import org.apache.spark.unsafe.types.UTF8String;

/** Values that are made of JSON once, for a few texts that come again and again; one thread uses an object. */
final class ByJson<T> {
  private final Map<UTF8String, T> known = new HashMap<>();
  private final Function<JsonNode, T> make;

  ByJson(Function<JsonNode, T> make) {
    this.make = make;
  }

  /** The value of a text in JSON. */
  T of(UTF8String json) {
    T parsed = known.get(json);
    if (parsed == null) {
      try {
        parsed = make.apply(new ObjectMapper().readTree(json.toString()));
      } catch (JsonProcessingException error) {
        throw new IllegalArgumentException(error);
      }
      known.put(json.clone(), parsed);
    }
    return parsed;
  }
}
