package jmsbridge.serdes;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.avro.AvroRuntimeException;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.spark.sql.avro.AvroDeserializer;
import org.apache.spark.sql.avro.AvroSerializer;
import org.apache.spark.sql.avro.SchemaConverters;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.internal.LegacyBehaviorPolicy;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/** Avro: the library resolves schemas, Spark's own classes turn values into rows and back. */
final class AvroFormat implements Format {
  private static final long serialVersionUID = 1L;
  private static final String VALUE = "value";

  @Override
  public String type() {
    return "AVRO";
  }

  @Override
  public SchemaText schema(String given) {
    SchemaText schema = new SchemaText(given, List.of());
    return new SchemaText(parsed(schema).toString(), List.of());
  }

  @Override
  public SchemaText schema(DataType type, String name) {
    return new SchemaText(SchemaConverters.toAvroType(type, false, name, "").toString(), List.of());
  }

  @Override
  public StructType fields(SchemaText schema) {
    SchemaConverters.SchemaType type = converted(parsed(schema));
    return type.dataType() instanceof StructType struct && isRecord(schema)
        ? struct
        : new StructType().add(VALUE, type.dataType(), type.nullable());
  }

  @Override
  public List<String> required(SchemaText schema) {
    return List.of(fields(schema).fields()).stream().filter(each -> !each.nullable()).map(StructField::name).toList();
  }

  @Override
  public boolean isRecord(SchemaText schema) {
    return parsed(schema).getType() == Schema.Type.RECORD;
  }

  private static SchemaConverters.SchemaType converted(Schema schema) {
    try {
      return SchemaConverters.toSqlType(schema);
    } catch (Exception failure) {
      throw new IllegalArgumentException("the Avro schema cannot be used: " + failure.getMessage(), failure);
    }
  }

  /** The schema as the library has it; IllegalArgumentException for any other text. */
  static Schema parsed(SchemaText schema) {
    try {
      Schema.Parser parser = new Schema.Parser();
      parse(schema.references(), parser);
      return parser.parse(schema.text());
    } catch (AvroRuntimeException failure) {
      throw new IllegalArgumentException("the text is not an Avro schema: " + failure.getMessage(), failure);
    }
  }

  private static void parse(List<SchemaText.Reference> references, Schema.Parser parser) {
    for (SchemaText.Reference reference : references) {
      parse(reference.schema().references(), parser);
      if (!parser.getTypes().containsKey(reference.name())) {
        parser.parse(reference.schema().text());
      }
    }
  }

  @Override
  public boolean reads(SchemaText writer, SchemaText reader) {
    return SchemaCompatibility.checkReaderWriterCompatibility(parsed(reader), parsed(writer)).getType()
        == SchemaCompatibility.SchemaCompatibilityType.COMPATIBLE;
  }

  @Override
  public Decoder decoder(SchemaText writer, SchemaText reader) {
    Schema wanted = parsed(reader);
    Schema written = parsed(writer);
    if (requiresItself(written)) {
      throw new IllegalArgumentException("it has no values: a record requires a field of its own type");
    }
    // Refuses schemas that contain themselves.
    DataType type = converted(wanted).dataType();
    AvroDecimals.checkScales(written, wanted);
    boolean hasDecimals = AvroDecimals.areIn(wanted);
    GenericDatumReader<Object> values = new GenericDatumReader<>(written, wanted);
    String corrected = LegacyBehaviorPolicy.CORRECTED().toString();
    AvroDeserializer rows = new AvroDeserializer(wanted, type, corrected, false, "", -1);
    boolean isRecord = isRecord(reader);
    return new Decoder() {
      private BinaryDecoder decoder;

      @Override
      public void readPrefix(ByteBuffer bytes) {
        // Avro has none.
      }

      @Override
      public InternalRow read(ByteBuffer bytes) throws IOException {
        int from = bytes.arrayOffset() + bytes.position();
        decoder = DecoderFactory.get().binaryDecoder(bytes.array(), from, bytes.remaining(), decoder);
        Object read = values.read(null, new BoundedDecoder(decoder, bytes.remaining()));
        if (!decoder.isEnd()) {
          throw new IOException("there are bytes behind its end");
        }
        if (hasDecimals) {
          AvroDecimals.checkDigits(wanted, read, "");
        }
        Option<Object> row = rows.deserialize(read);
        return isRecord ? (InternalRow) row.get() : new GenericInternalRow(new Object[] {row.get()});
      }
    };
  }

  /** Whether each value of a schema would have another one of the same schema in it. */
  static boolean requiresItself(Schema schema) {
    return requiresItself(schema, List.of());
  }

  private static boolean requiresItself(Schema schema, List<String> within) {
    if (schema.getType() == Schema.Type.UNION) {
      return !schema.getTypes().isEmpty() && schema.getTypes().stream().allMatch(each -> requiresItself(each, within));
    }
    if (schema.getType() != Schema.Type.RECORD) {
      return false;
    }
    if (within.contains(schema.getFullName())) {
      return true;
    }
    List<String> path = new ArrayList<>(within);
    path.add(schema.getFullName());
    return schema.getFields().stream().anyMatch(each -> requiresItself(each.schema(), path));
  }

  @Override
  public Encoder encoder(SchemaText schema, StructType fields) {
    Schema avro = parsed(schema);
    boolean isRecord = isRecord(schema);
    DataType type = isRecord ? fields.asNullable() : fields.fields()[0].dataType();
    AvroSerializer records = new AvroSerializer(type, avro, avro.isNullable(), false, LegacyBehaviorPolicy.CORRECTED());
    GenericDatumWriter<Object> values = new GenericDatumWriter<>(avro);
    return new Encoder() {
      private BinaryEncoder encoder;

      @Override
      public void writePrefix(OutputStream out) {
        // Avro has none.
      }

      @Override
      public void write(InternalRow value, OutputStream out) throws IOException {
        encoder = EncoderFactory.get().binaryEncoder(out, encoder);
        values.write(records.serialize(isRecord ? value : value.isNullAt(0) ? null : value.get(0, type)), encoder);
        encoder.flush();
      }
    };
  }
}
