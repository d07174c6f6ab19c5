package jmsbridge.serdes;

import java.io.IOException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.avro.LogicalTypes;
import org.apache.avro.Schema;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.util.Utf8;

/** Documents of Avro values of one schema, written while the value is read. */
final class AvroDocuments implements DocumentReader {
  private final Schema schema;
  private BinaryDecoder decoder;

  AvroDocuments(SchemaText schema) {
    this.schema = AvroFormat.parsed(schema);
  }

  @Override
  public byte[] json(ByteBuffer bytes) throws IOException {
    int from = bytes.arrayOffset() + bytes.position();
    decoder = DecoderFactory.get().binaryDecoder(bytes.array(), from, bytes.remaining(), decoder);
    DocumentWriter out = new DocumentWriter();
    write(schema, new BoundedDecoder(decoder, bytes.remaining()), out);
    if (!decoder.isEnd()) {
      throw new IOException("there are bytes behind its end");
    }
    return out.finished();
  }

  private static void write(Schema schema, BoundedDecoder in, DocumentWriter out) throws IOException {
    switch (schema.getType()) {
      case RECORD -> {
        out.openObject();
        for (Schema.Field field : schema.getFields()) {
          out.name(field.name());
          write(field.schema(), in, out);
        }
        out.closeObject();
      }
      case ARRAY -> {
        out.openArray();
        for (long left = in.readArrayStart(); left != 0; left = in.arrayNext()) {
          for (; left > 0; left--) {
            write(schema.getElementType(), in, out);
          }
        }
        out.closeArray();
      }
      case MAP -> {
        out.openObject();
        for (long left = in.readMapStart(); left != 0; left = in.mapNext()) {
          for (; left > 0; left--) {
            out.name(text(in));
            write(schema.getValueType(), in, out);
          }
        }
        out.closeObject();
      }
      case UNION -> write(chosen(schema.getTypes(), in.readIndex()), in, out);
      case ENUM -> out.text(chosen(schema.getEnumSymbols(), in.readEnum()));
      case FIXED -> {
        write(schema, in.readFixed(schema.getFixedSize()), out);
      }
      case BYTES -> write(schema, in.readBytes(null).array(), out);
      case STRING -> out.text(text(in));
      case INT -> out.number(in.readInt());
      case LONG -> out.number(in.readLong());
      case FLOAT -> out.number(in.readFloat());
      case DOUBLE -> out.number(in.readDouble());
      case BOOLEAN -> out.flag(in.readBoolean());
      case NULL -> out.nothing();
      default -> throw new IOException("it has a value of the type " + schema.getType());
    }
  }

  private static void write(Schema schema, byte[] bytes, DocumentWriter out) throws IOException {
    if (!(schema.getLogicalType() instanceof LogicalTypes.Decimal decimal)) {
      out.bytes(bytes);
      return;
    }
    BigDecimal value = new BigDecimal(bytes.length == 0 ? BigInteger.ZERO : new BigInteger(bytes), decimal.getScale());
    if (value.precision() > decimal.getPrecision()) {
      throw new IOException("it has a decimal with more than %d digits".formatted(decimal.getPrecision()));
    }
    out.number(value);
  }

  private static <T> T chosen(List<T> among, int index) throws IOException {
    if (index < 0 || index >= among.size()) {
      throw new IOException("it has the choice %d where there are %d".formatted(index, among.size()));
    }
    return among.get(index);
  }

  private static String text(BoundedDecoder in) throws IOException {
    Utf8 text = in.readString((Utf8) null);
    try {
      return StandardCharsets.UTF_8.newDecoder()
          .decode(ByteBuffer.wrap(text.getBytes(), 0, text.getByteLength())).toString();
    } catch (CharacterCodingException wrong) {
      throw new IOException("a text in it is not UTF-8", wrong);
    }
  }
}
