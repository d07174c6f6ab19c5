package jmsbridge.streams;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import jmsbridge.serdes.SchemaReader;
import jmsbridge.serdes.SchemaWriter;
import jmsbridge.serdes.ValueReader;
import jmsbridge.serdes.ValueWriter;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** JSON in the place of keys or values with a schema, for tests that give and look at them. */
final class JsonValues {
  private static final StructType RAW = new StructType().add("value", DataTypes.BinaryType);
  static final Map<String, String> OPTIONS =
      Map.of("mode", "FAILFAST", "timestampFormat", "yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "timeZone", "UTC");

  /** JSON of a field {@code value} before its content. */
  private static final byte[] BEFORE = "{\"value\":".getBytes(StandardCharsets.UTF_8);

  private record Input(ColumnReader json, SchemaWriter writer) {}

  private record OutputValue(SchemaReader reader, Projection json) {}

  private final SparkSession session;
  private final Map<String, Input> inputs = new HashMap<>();
  private final Map<String, OutputValue> outputs = new HashMap<>();

  JsonValues(SparkSession session) {
    this.session = session;
  }

  /** Notes how values of a topic that is read are written. */
  void note(String topic, ValueReader reader) {
    if (reader instanceof SchemaReader schemas) {
      Column read = functions.from_json(functions.col("value").cast("string"), schemas.type().asNullable(), OPTIONS);
      Projection json = Expressions.projection(session, RAW, KeyKind.BYTES, List.of(read));
      inputs.put(topic, new Input(ColumnReader.ofJson(json), SchemaWriter.of(schemas)));
    }
  }

  /** Notes how values of a topic that is written are read; null: of all topics that are not known by name. */
  void note(String topic, ValueWriter writer) {
    if (writer instanceof SchemaWriter schemas) {
      SchemaReader reader = schemas.reader();
      StructType type = reader.type();
      Column[] fields = List.of(type.fieldNames()).stream().map(Expressions::field).toArray(Column[]::new);
      Column json = functions.to_json(functions.struct(fields), OPTIONS).cast("binary");
      Projection made = Expressions.projection(session, type, KeyKind.BYTES, List.of(json));
      outputs.put(topic, new OutputValue(reader, made));
    }
  }

  byte[] encoded(String topic, byte[] json) {
    Input input = inputs.get(topic);
    return input == null ? json : input.writer().write(topic, input.json().read(json));
  }

  byte[] decoded(String topic, byte[] value) {
    OutputValue output = outputs.getOrDefault(topic, outputs.get(null));
    if (output == null) {
      return value;
    }
    return output.json().apply(output.reader().read(value)).getBinary(0);
  }

  /** The bytes of a key from its JSON, which is the key itself where the schema is not a record. */
  byte[] encodedKey(String topic, byte[] json) {
    Input input = inputs.get(topic);
    return encoded(topic, input == null || input.writer().isRecord() ? json : wrapped(json));
  }

  /** A key as JSON; null where the keys of the topic have no schema. */
  byte[] decodedKey(String topic, byte[] key) {
    OutputValue output = outputs.getOrDefault(topic, outputs.get(null));
    if (output == null) {
      return null;
    }
    byte[] json = decoded(topic, key);
    return output.reader().isRecord() ? json : Arrays.copyOfRange(json, BEFORE.length, json.length - 1);
  }

  private static byte[] wrapped(byte[] json) {
    return ByteBuffer.allocate(BEFORE.length + json.length + 1).put(BEFORE).put(json).put((byte) '}').array();
  }
}
