package jmsbridge.serdes;

import com.google.protobuf.ByteString;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.EnumValueDescriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.Message;
import java.io.IOException;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.util.List;

/** Documents of the Protobuf messages of one schema. */
final class ProtobufDocuments implements DocumentReader {
  private final FileDescriptor file;
  /** The message that all values are; null: each begins with the indexes of its own, as in Confluent's wire format. */
  private final Descriptor message;

  ProtobufDocuments(SchemaText schema) {
    this(ProtobufFormat.file(schema), null);
  }

  private ProtobufDocuments(FileDescriptor file, Descriptor message) {
    this.file = file;
    this.message = message;
  }

  /** Documents of bare messages, by the full name of the message; empty: the first one of the schema. */
  static ProtobufDocuments bare(SchemaText schema, String message) {
    Descriptor descriptor = new ProtobufFormat(message).descriptor(schema);
    return new ProtobufDocuments(descriptor.getFile(), descriptor);
  }

  @Override
  public byte[] json(ByteBuffer bytes) throws IOException {
    Descriptor type = message == null ? indexed(bytes) : message;
    int from = bytes.arrayOffset() + bytes.position();
    DynamicMessage value = DynamicMessage.newBuilder(type).mergeFrom(bytes.array(), from, bytes.remaining()).build();
    DocumentWriter out = new DocumentWriter();
    write(value, out);
    return out.finished();
  }

  private Descriptor indexed(ByteBuffer bytes) throws IOException {
    List<Integer> indexes = ProtobufFormat.indexes(bytes);
    Descriptor type = ProtobufFormat.message(file, indexes);
    if (type == null) {
      throw new UnfitValueException("the schema has no message with the indexes %s".formatted(indexes));
    }
    return type;
  }

  private static void write(Message message, DocumentWriter out) throws IOException {
    out.openObject();
    for (FieldDescriptor field : message.getDescriptorForType().getFields()) {
      if (field.isRepeated()) {
        out.name(field.getName());
        writeAll(field, message, out);
      } else if (!field.hasPresence() || message.hasField(field)) {
        out.name(field.getName());
        write(field, message.getField(field), out);
      }
    }
    out.closeObject();
  }

  private static void writeAll(FieldDescriptor field, Message message, DocumentWriter out) throws IOException {
    int count = message.getRepeatedFieldCount(field);
    if (field.isMapField()) {
      FieldDescriptor key = field.getMessageType().findFieldByNumber(1);
      FieldDescriptor value = field.getMessageType().findFieldByNumber(2);
      out.openObject();
      for (int index = 0; index < count; index++) {
        Message entry = (Message) message.getRepeatedField(field, index);
        out.name(name(key, entry.getField(key)));
        write(value, entry.getField(value), out);
      }
      out.closeObject();
      return;
    }
    out.openArray();
    for (int index = 0; index < count; index++) {
      write(field, message.getRepeatedField(field, index), out);
    }
    out.closeArray();
  }

  private static String name(FieldDescriptor key, Object value) {
    return switch (key.getType()) {
      case UINT32, FIXED32 -> Integer.toUnsignedString((Integer) value);
      case UINT64, FIXED64 -> Long.toUnsignedString((Long) value);
      default -> String.valueOf(value);
    };
  }

  private static void write(FieldDescriptor field, Object value, DocumentWriter out) throws IOException {
    switch (field.getType()) {
      case MESSAGE, GROUP -> write((Message) value, out);
      case ENUM -> {
        EnumValueDescriptor chosen = (EnumValueDescriptor) value;
        if (chosen.getIndex() < 0) {
          out.number(chosen.getNumber());
        } else {
          out.text(chosen.getName());
        }
      }
      case STRING -> out.text((String) value);
      case BYTES -> out.bytes(((ByteString) value).toByteArray());
      case BOOL -> out.flag((Boolean) value);
      case FLOAT -> out.number((Float) value);
      case DOUBLE -> out.number((Double) value);
      case UINT32, FIXED32 -> out.number(Integer.toUnsignedLong((Integer) value));
      case UINT64, FIXED64 -> out.number(new BigDecimal(Long.toUnsignedString((Long) value)));
      default -> out.number(((Number) value).longValue());
    }
  }
}
