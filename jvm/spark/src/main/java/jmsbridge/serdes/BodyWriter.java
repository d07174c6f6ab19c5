package jmsbridge.serdes;

import java.nio.ByteBuffer;

/** Writer of JSON bodies in Confluent's wire format by a schema, which the registry has. */
public final class BodyWriter {
  private static final int HEAD_BYTES = 1 + Integer.BYTES;

  private final NamedSchema schema;
  private final JsonSchemas check;
  private final BodyEncoder encoder;

  /** Writer by a schema. */
  public BodyWriter(NamedSchema schema) {
    boolean isJson = schema.type().equals("JSON");
    this.schema = schema;
    check = isJson ? new JsonSchemas(schema.schema(), schema.name(), null) : null;
    encoder = isJson ? null : BodyEncoder.of(schema.type(), schema.schema(), schema.message());
  }

  /** The body as a value of the schema; UnfitValueException, with the reason, if it does not fit. */
  public byte[] write(byte[] body) {
    if (body == null) {
      throw new UnfitValueException("there is no body to write as %s".formatted(schema.name()));
    }
    byte[] value = encoder == null ? checked(body) : encoded(body);
    return ByteBuffer.allocate(HEAD_BYTES + value.length)
        .put(SchemaReader.MAGIC).putInt(schema.id()).put(value).array();
  }

  private byte[] checked(byte[] body) {
    String fault = check.faultOf(body);
    if (fault != null) {
      throw new UnfitValueException(fault);
    }
    return body;
  }

  private byte[] encoded(byte[] body) {
    try {
      return encoder.encode(body, schema.isXml());
    } catch (UnfitValueException unfit) {
      throw new UnfitValueException("the body cannot be written as %s: %s".formatted(schema.name(), unfit.getMessage()));
    }
  }
}
