package jmsbridge.serdes;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.io.NumberOutput;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.math.BigDecimal;
import java.util.Base64;

/**
 * Writer of a {@link Document}: JSON text with exact numbers, of a bounded depth and size.
 *
 * <p>{@code engine/schemas/documents.py} writes the same values in Python.
 */
final class DocumentWriter {
  private static final JsonFactory JSON = new JsonFactory();
  /** Scale up to which a decimal is written without an exponent. */
  private static final int PLAIN_SCALE = 1_000;
  /** Bytes between two looks at the size of the text. */
  private static final int LOOK = 1_024;

  private final ByteArrayOutputStream bytes = new ByteArrayOutputStream(512);
  private final JsonGenerator out;
  private int depth;
  private int values;

  DocumentWriter() throws IOException {
    out = JSON.createGenerator(bytes);
  }

  void openObject() throws IOException {
    deeper();
    out.writeStartObject();
  }

  void closeObject() throws IOException {
    depth--;
    out.writeEndObject();
  }

  void openArray() throws IOException {
    deeper();
    out.writeStartArray();
  }

  void closeArray() throws IOException {
    depth--;
    out.writeEndArray();
  }

  private void deeper() throws IOException {
    if (++depth > Document.DEPTH) {
      throw Document.tooDeep();
    }
    look();
  }

  private void look() throws IOException {
    if (++values % LOOK == 0) {
      checkSize();
    }
  }

  private void checkSize() throws IOException {
    out.flush();
    if (bytes.size() > Document.MOST_BYTES) {
      throw new UnfitValueException("its content has more than %,d bytes as JSON".formatted(Document.MOST_BYTES));
    }
  }

  void name(String name) throws IOException {
    out.writeFieldName(name);
  }

  void text(String text) throws IOException {
    look();
    out.writeString(text);
  }

  void bytes(byte[] content) throws IOException {
    text(Base64.getEncoder().encodeToString(content));
  }

  void flag(boolean value) throws IOException {
    look();
    out.writeBoolean(value);
  }

  void nothing() throws IOException {
    look();
    out.writeNull();
  }

  void number(long value) throws IOException {
    look();
    out.writeNumber(value);
  }

  void number(BigDecimal value) throws IOException {
    look();
    out.writeNumber(Math.abs(value.scale()) > PLAIN_SCALE ? value.toString() : value.toPlainString());
  }

  /** The fewest digits that stand for the value; null for what is not a number. */
  void number(double value) throws IOException {
    look();
    if (Double.isFinite(value)) {
      out.writeNumber(NumberOutput.toString(value, true));
    } else {
      out.writeNull();
    }
  }

  /** As {@link #number(double)}, of single precision. */
  void number(float value) throws IOException {
    look();
    if (Float.isFinite(value)) {
      out.writeNumber(NumberOutput.toString(value, true));
    } else {
      out.writeNull();
    }
  }

  /** The finished text. */
  byte[] finished() throws IOException {
    checkSize();
    out.close();
    return bytes.toByteArray();
  }
}
