package jmsbridge.serdes;

import com.fasterxml.jackson.core.JacksonException;
import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.json.JsonReadFeature;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.Serializable;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampType;

/**
 * Check of the numbers in a JSON object against the types of its fields, before Spark reads the object.
 *
 * <p>Spark rounds decimals, reads what is too large for a double as infinite, and writes a number that is read as text
 * anew, with other digits. Here such a decimal or double is refused by the name of its field, and a number in the place
 * of text is put in quotes as it stands.
 */
public final class JsonNumbers implements Serializable {
  private static final long serialVersionUID = 1L;
  /** Most characters of a number, as in Jackson: the time to convert one grows with the square of its digits. */
  private static final int MOST_CHARACTERS = StreamReadConstraints.DEFAULT_MAX_NUM_LEN;
  private static final int MOST_SHOWN = 40;
  private static final long MICROS = 1_000_000;
  private static final Pattern NUMBER = Pattern.compile("[+-]?(\\d*)\\.?(\\d*)(?:[eE]([+-]?\\d{1,9}))?");
  /** The syntax that Spark takes, but for the length of numbers, which is checked here by the name of the field. */
  private static final JsonFactory JSON = JsonFactory.builder()
      .enable(JsonReadFeature.ALLOW_SINGLE_QUOTES)
      .enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS)
      .streamReadConstraints(StreamReadConstraints.builder()
          .maxNumberLength(Integer.MAX_VALUE).maxStringLength(Integer.MAX_VALUE).build())
      .build();

  private final StructType type;

  /** Check of objects with fields of these types. */
  public JsonNumbers(StructType type) {
    this.type = type;
  }

  /** The object with text where a field of text has something else; UnfitValueException for a number that does not fit. */
  public byte[] checked(byte[] json) {
    try (JsonParser parser = parser(json)) {
      if (!new Walk(parser, null).take(type)) {
        return json;
      }
    } catch (JacksonException invalid) {
      // Spark says what is wrong.
      return json;
    } catch (IOException failure) {
      throw new UncheckedIOException(failure);
    }
    ByteArrayOutputStream bytes = new ByteArrayOutputStream(json.length + 16);
    try (JsonParser parser = parser(json); JsonGenerator out = JSON.createGenerator(bytes)) {
      new Walk(parser, out).take(type);
    } catch (IOException failure) {
      throw new UncheckedIOException(failure);
    }
    return bytes.toByteArray();
  }

  /** A parser at the first token, of the characters that Spark's parser gets. */
  private static JsonParser parser(byte[] json) throws IOException {
    JsonParser parser =
        JSON.createParser(new InputStreamReader(new ByteArrayInputStream(json), StandardCharsets.UTF_8));
    parser.nextToken();
    return parser;
  }

  /** Way through an object, which is copied if there is an output. */
  private record Walk(JsonParser in, JsonGenerator out) {
    /** Takes the value at the present token; true if there is something to put in quotes. */
    boolean take(DataType type) throws IOException {
      JsonToken token = in.currentToken();
      if (type instanceof StringType) {
        return takeText(token);
      }
      if (token == JsonToken.START_OBJECT && (type instanceof StructType || type instanceof MapType)) {
        return takeFields(type);
      }
      if (token == JsonToken.START_ARRAY && type instanceof ArrayType array) {
        return takeElements(array.elementType());
      }
      if (type != null && token != null && token.isScalarValue()) {
        check(type, token);
      }
      if (out != null) {
        copy(in, out);
      } else {
        in.skipChildren();
      }
      return false;
    }

    private boolean takeFields(DataType type) throws IOException {
      boolean isText = false;
      if (out != null) {
        out.writeStartObject();
      }
      while (in.nextToken() == JsonToken.FIELD_NAME) {
        DataType field = fieldType(type, in.currentName());
        if (out != null) {
          out.writeFieldName(in.currentName());
        }
        in.nextToken();
        isText |= take(field);
      }
      if (out != null) {
        out.writeEndObject();
      }
      return isText;
    }

    private static DataType fieldType(DataType type, String name) {
      if (type instanceof MapType map) {
        return map.valueType();
      }
      StructType fields = (StructType) type;
      return fields.getFieldIndex(name).isEmpty() ? null : fields.apply(name).dataType();
    }

    private boolean takeElements(DataType type) throws IOException {
      boolean isText = false;
      if (out != null) {
        out.writeStartArray();
      }
      while (in.nextToken() != JsonToken.END_ARRAY) {
        isText |= take(type);
      }
      if (out != null) {
        out.writeEndArray();
      }
      return isText;
    }

    private boolean takeText(JsonToken token) throws IOException {
      boolean isText = token.isNumeric() || token.isStructStart();
      if (out == null) {
        in.skipChildren();
      } else if (isText) {
        StringWriter text = new StringWriter();
        try (JsonGenerator inner = JSON.createGenerator(text)) {
          copy(in, inner);
        }
        out.writeString(text.toString());
      } else {
        out.copyCurrentEvent(in);
      }
      return isText;
    }

    /** Copies the present value with the digits of its numbers as they are. */
    private static void copy(JsonParser in, JsonGenerator out) throws IOException {
      int depth = 0;
      do {
        JsonToken token = in.currentToken();
        depth += token.isStructStart() ? 1 : token.isStructEnd() ? -1 : 0;
        if (token.isNumeric()) {
          out.writeRawValue(in.getText());
        } else {
          out.copyCurrentEvent(in);
        }
      } while (depth > 0 && in.nextToken() != null);
    }

    private void check(DataType type, JsonToken token) throws IOException {
      boolean isDecimal = type instanceof DecimalType;
      if (token.isNumeric() || token == JsonToken.VALUE_STRING && isDecimal) {
        // Spark takes commas in a decimal that is text.
        String text = token.isNumeric() ? in.getText() : in.getText().replace(",", "");
        if (text.length() > MOST_CHARACTERS || !fits(text, type, token)) {
          String name = in.getParsingContext().pathAsPointer().toString().substring(1).replace('/', '.');
          throw new UnfitValueException("the field %s is a %s, which cannot be %s without loss".formatted(
              name, type.simpleString(), text.length() > MOST_SHOWN ? text.substring(0, MOST_SHOWN) + "..." : text));
        }
      }
    }

    private static boolean fits(String text, DataType type, JsonToken token) {
      // NaN and infinities may be written as such.
      boolean isNumber = Character.isDigit(text.charAt(text.length() - 1));
      if (type instanceof DecimalType decimal) {
        return isExact(text, decimal.precision(), decimal.scale());
      }
      if (type instanceof DoubleType || type instanceof FloatType) {
        return !isNumber
            || (type instanceof DoubleType
                ? Double.isFinite(Double.parseDouble(text)) : Float.isFinite(Float.parseFloat(text)));
      }
      if (type instanceof TimestampType) {
        // Spark takes seconds since 1970.
        return isBetween(text, Long.MIN_VALUE / MICROS, Long.MAX_VALUE / MICROS);
      }
      if (type instanceof IntegralType) {
        long largest = Long.MAX_VALUE >> Long.SIZE - Byte.SIZE * type.defaultSize();
        return token == JsonToken.VALUE_NUMBER_INT && isBetween(text, -largest - 1, largest);
      }
      return true;
    }

    private static boolean isBetween(String text, long smallest, long largest) {
      try {
        long number = Long.parseLong(text);
        return number >= smallest && number <= largest;
      } catch (NumberFormatException tooLong) {
        return false;
      }
    }

    /** Whether a number is a value of a decimal type; its digits alone are counted, since an exponent may be large. */
    private static boolean isExact(String text, int precision, int scale) {
      Matcher number = NUMBER.matcher(text);
      if (!number.matches() || number.end(1) == number.start(1) && number.end(2) == number.start(2)) {
        return false;
      }
      String digits = (number.group(1) + number.group(2)).replaceFirst("^0+", "");
      String significant = digits.replaceFirst("0+$", "");
      long exponent = number.group(3) == null ? 0 : Long.parseLong(number.group(3));
      exponent += digits.length() - significant.length() - number.group(2).length();
      return significant.isEmpty() || exponent >= -scale && significant.length() + exponent <= precision - scale;
    }
  }
}
