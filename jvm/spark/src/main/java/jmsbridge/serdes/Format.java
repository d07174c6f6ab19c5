package jmsbridge.serdes;

import java.io.IOException;
import java.io.OutputStream;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * Format of values with a schema, such as Avro.
 *
 * <p>Methods throw IllegalArgumentException for schemas that cannot be used, with the reason.
 */
interface Format extends Serializable {
  /** Name of the format in a registry. */
  String type();

  /** The schema that a user has given. */
  SchemaText schema(String given);

  /** The schema of values of a type, for which no schema is given; a record has this name. */
  SchemaText schema(DataType type, String name);

  /** Fields of the values of a schema; values that are not records are in one field, {@code value}. */
  StructType fields(SchemaText schema);

  /** Whether the values of a schema are records. */
  boolean isRecord(SchemaText schema);

  /** Names of the fields that a value of the schema cannot lack. */
  List<String> required(SchemaText schema);

  /** Whether all values of one schema can be read into the fields of another. */
  boolean reads(SchemaText writer, SchemaText reader);

  /** Decoder of values that were written by a schema into the fields of another. */
  Decoder decoder(SchemaText writer, SchemaText reader);

  /** Fields that an encoder of a schema takes of values with fields of their own. */
  default StructType written(SchemaText schema, StructType own) {
    return fields(schema);
  }

  /** Encoder of values of a schema with these fields. */
  Encoder encoder(SchemaText schema, StructType fields);

  /** Decoder of one kind of values. */
  interface Decoder {
    /** Passes what the format puts between a schema's id and the value, in Confluent's wire format. */
    void readPrefix(ByteBuffer bytes);

    /** Reads a value from the rest of the bytes. */
    InternalRow read(ByteBuffer bytes) throws IOException;
  }

  /** Encoder of one kind of values. */
  interface Encoder {
    /** Writes what the format puts between a schema's id and the value, in Confluent's wire format. */
    void writePrefix(OutputStream out) throws IOException;

    void write(InternalRow value, OutputStream out) throws IOException;
  }
}
