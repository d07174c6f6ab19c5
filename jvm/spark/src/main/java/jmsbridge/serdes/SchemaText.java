package jmsbridge.serdes;

import java.io.Serializable;
import java.util.List;

/**
 * Schema as a registry keeps it.
 *
 * @param text JSON for Avro; a FileDescriptorProto in base64, or text, for Protobuf
 * @param references the schemas that it names, those that others need first
 */
public record SchemaText(String text, List<Reference> references) implements Serializable {
  /** Schema under the name by which another one refers to it. */
  public record Reference(String name, SchemaText schema) implements Serializable {}
}
