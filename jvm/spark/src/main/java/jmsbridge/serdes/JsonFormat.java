package jmsbridge.serdes;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.networknt.schema.Error;
import com.networknt.schema.path.NodePath;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.json.JsonToStructsEvaluator;
import org.apache.spark.sql.catalyst.expressions.json.StructsToJsonEvaluator;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.Some;
import scala.jdk.javaapi.CollectionConverters;

/**
 * JSON Schema: its library checks values, Spark's own classes turn them into rows and back.
 *
 * <p>A value is checked against the schema that it was written by, and read into the fields of another by their names.
 */
final class JsonFormat implements Format {
  private static final long serialVersionUID = 1L;
  private static final String VALUE = "value";
  private static final String REQUIRED = "required";
  private static final byte[] BEFORE = "{\"value\":".getBytes(StandardCharsets.UTF_8);
  private static final byte[] NULL = "null".getBytes(StandardCharsets.UTF_8);
  private static final Option<String> UTC = Some.apply("UTC");
  private static final Map<String, String> READING = Map.of("mode", "FAILFAST");
  private static final Map<String, String> WRITING =
      Map.of("timestampFormat", "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "ignoreNullFields", "true");

  @Override
  public String type() {
    return "JSON";
  }

  @Override
  public SchemaText schema(String given) {
    return JsonSchemas.schema(given);
  }

  @Override
  public SchemaText schema(DataType type, String name) {
    return new SchemaText(JsonTypes.schema(type, name), List.of());
  }

  @Override
  public StructType fields(SchemaText schema) {
    return declared(schema).asNullable();
  }

  private static StructType declared(SchemaText schema) {
    DataType type = JsonTypes.of(schema);
    return type instanceof StructType struct ? struct : new StructType().add(VALUE, type);
  }

  @Override
  public boolean isRecord(SchemaText schema) {
    return JsonTypes.of(schema) instanceof StructType;
  }

  @Override
  public List<String> required(SchemaText schema) {
    return Arrays.stream(declared(schema).fields()).filter(each -> !each.nullable()).map(StructField::name).toList();
  }

  @Override
  public boolean reads(SchemaText writer, SchemaText reader) {
    return JsonTypes.reads(declared(writer), declared(reader));
  }

  @Override
  public Decoder decoder(SchemaText writer, SchemaText reader) {
    JsonSchemas check = new JsonSchemas(writer, "", null);
    boolean isRecord = isRecord(reader);
    StructType fields = fields(reader);
    JsonNumbers numbers = new JsonNumbers(fields);
    JsonToStructsEvaluator rows = new JsonToStructsEvaluator(options(READING), fields, "", UTC, false);
    return new Decoder() {
      @Override
      public void readPrefix(ByteBuffer bytes) {
        // JSON has none.
      }

      @Override
      public InternalRow read(ByteBuffer bytes) throws IOException {
        byte[] text = new byte[bytes.remaining()];
        bytes.get(text);
        JsonNode document = JsonSchemas.JSON.readTree(text);
        refuse(check.errors(document));
        if (isRecord && !document.isObject()) {
          throw new UnfitValueException("the value is not a JSON object");
        }
        byte[] object = numbers.checked(isRecord ? text : wrapped(text));
        return (InternalRow) rows.evaluate(UTF8String.fromBytes(object));
      }
    };
  }

  private static byte[] wrapped(byte[] text) {
    return ByteBuffer.allocate(BEFORE.length + text.length + 1).put(BEFORE).put(text).put((byte) '}').array();
  }

  /** The fields of the schema, but for numbers of their own types: JSON has them as they are. */
  @Override
  public StructType written(SchemaText schema, StructType own) {
    return (StructType) JsonTypes.written(fields(schema), own);
  }

  @Override
  public Encoder encoder(SchemaText schema, StructType fields) {
    JsonSchemas check = new JsonSchemas(schema, "", null);
    boolean isRecord = isRecord(schema);
    StructsToJsonEvaluator texts = new StructsToJsonEvaluator(options(WRITING), fields, UTC);
    return new Encoder() {
      @Override
      public void writePrefix(OutputStream out) {
        // JSON has none.
      }

      @Override
      public void write(InternalRow value, OutputStream out) throws IOException {
        byte[] text = ((UTF8String) texts.evaluate(value)).getBytes();
        out.write(fitted(isRecord ? text : unwrapped(text), check));
      }
    };
  }

  private static byte[] unwrapped(byte[] object) {
    return object.length < BEFORE.length ? NULL : Arrays.copyOfRange(object, BEFORE.length, object.length - 1);
  }

  /** The text of a value without nulls, with null for the fields that the schema requires. */
  private static byte[] fitted(byte[] text, JsonSchemas check) throws IOException {
    JsonNode document = JsonSchemas.JSON.readTree(text);
    List<Error> errors = check.errors(document);
    List<Error> missing = errors.stream().filter(each -> REQUIRED.equals(each.getKeyword())).toList();
    if (missing.isEmpty()) {
      refuse(errors);
      return text;
    }
    for (Error error : missing) {
      ((ObjectNode) at(document, error.getInstanceLocation())).putNull(error.getProperty());
    }
    refuse(check.errors(document));
    return JsonSchemas.JSON.writeValueAsBytes(document);
  }

  private static JsonNode at(JsonNode document, NodePath location) {
    JsonNode node = document;
    for (int step = 0; step < location.getNameCount(); step++) {
      Object element = location.getElement(step);
      node = element instanceof Integer index ? node.get(index) : node.get(String.valueOf(element));
    }
    return node;
  }

  private static void refuse(List<Error> errors) {
    if (!errors.isEmpty()) {
      throw new UnfitValueException("the value does not fit its JSON Schema: " + JsonSchemas.told(errors, each ->
          "%s: %s".formatted(JsonSchemas.path(VALUE, each.getInstanceLocation()), each.getMessage())));
    }
  }

  private static scala.collection.immutable.Map<String, String> options(Map<String, String> given) {
    return scala.collection.immutable.Map.from(CollectionConverters.asScala(given));
  }
}
