package jmsbridge.serdes;

import com.google.protobuf.AnyProto;
import com.google.protobuf.ApiProto;
import com.google.protobuf.DescriptorProtos.DescriptorProto;
import com.google.protobuf.DescriptorProtos;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.DescriptorProtos.FileDescriptorSet;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.DescriptorValidationException;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DurationProto;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.EmptyProto;
import com.google.protobuf.FieldMaskProto;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.SourceContextProto;
import com.google.protobuf.StructProto;
import com.google.protobuf.TimestampProto;
import com.google.protobuf.TypeProto;
import com.google.protobuf.WrappersProto;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** Protobuf: the library reads and writes messages by their descriptors, {@link ProtobufRows} turns them into rows. */
final class ProtobufFormat implements Format {
  private static final long serialVersionUID = 1L;
  private static final Map<String, FileDescriptor> WELL_KNOWN = Stream
      .of(AnyProto.getDescriptor(), ApiProto.getDescriptor(), DescriptorProtos.getDescriptor(),
          DurationProto.getDescriptor(), EmptyProto.getDescriptor(), FieldMaskProto.getDescriptor(),
          SourceContextProto.getDescriptor(), StructProto.getDescriptor(), TimestampProto.getDescriptor(),
          TypeProto.getDescriptor(), WrappersProto.getDescriptor())
      .collect(Collectors.toMap(FileDescriptor::getName, Function.identity()));

  private final String message;

  /** Creates the format with the full name of a message; empty: the first one of each schema. */
  ProtobufFormat(String message) {
    this.message = message;
  }

  @Override
  public String type() {
    return "PROTOBUF";
  }

  /** The file of the message, in a FileDescriptorSet. */
  @Override
  public SchemaText schema(String given) {
    Map<String, FileDescriptorProto> files = new LinkedHashMap<>();
    FileDescriptorProto last = null;
    FileDescriptorProto main = null;
    try {
      for (FileDescriptorProto proto : FileDescriptorSet.parseFrom(Base64.getDecoder().decode(given)).getFileList()) {
        files.put(proto.getName(), proto);
        last = proto;
        main = names(proto).contains(message) ? proto : main;
      }
    } catch (InvalidProtocolBufferException failure) {
      throw new IllegalArgumentException(
          "the schema is not a FileDescriptorSet; protoc --include_imports --descriptor_set_out=FILE makes one", failure);
    }
    if (last == null || main == null && !message.isEmpty()) {
      throw new IllegalArgumentException("no file of the schema has the message '%s'".formatted(message));
    }
    return text(main == null ? last : main, files);
  }

  private static List<String> names(FileDescriptorProto file) {
    List<String> names = new ArrayList<>();
    add(file.getMessageTypeList(), file.getPackage().isEmpty() ? "" : file.getPackage() + ".", names);
    return names;
  }

  private static void add(List<DescriptorProto> messages, String prefix, List<String> names) {
    for (DescriptorProto type : messages) {
      names.add(prefix + type.getName());
      add(type.getNestedTypeList(), prefix + type.getName() + ".", names);
    }
  }

  private static SchemaText text(FileDescriptorProto file, Map<String, FileDescriptorProto> files) {
    List<SchemaText.Reference> references = new ArrayList<>();
    for (String name : file.getDependencyList()) {
      if (WELL_KNOWN.containsKey(name)) {
        continue;
      }
      if (!files.containsKey(name)) {
        throw new IllegalArgumentException(
            "the schema lacks '%s', which '%s' imports: protoc --include_imports adds it".formatted(name,
                file.getName()));
      }
      references.add(new SchemaText.Reference(name, text(files.get(name), files)));
    }
    return new SchemaText(Base64.getEncoder().encodeToString(file.toByteArray()), references);
  }

  @Override
  public SchemaText schema(DataType type, String name) {
    throw new IllegalArgumentException(
        "the numbers of Protobuf's fields cannot be told from the record's fields: give a schema, or register=False for"
            + " the one that the registry has");
  }

  @Override
  public StructType fields(SchemaText schema) {
    return ProtobufRows.type(descriptor(schema));
  }

  @Override
  public boolean isRecord(SchemaText schema) {
    return true;
  }

  @Override
  public List<String> required(SchemaText schema) {
    return descriptor(schema).getFields().stream().filter(FieldDescriptor::isRequired).map(FieldDescriptor::getName)
        .toList();
  }

  /** The message of a schema; IllegalArgumentException if there is none. */
  Descriptor descriptor(SchemaText schema) {
    FileDescriptor file = file(schema);
    if (message.isEmpty()) {
      if (file.getMessageTypes().isEmpty()) {
        throw new IllegalArgumentException("the schema '%s' has no message".formatted(file.getName()));
      }
      return file.getMessageTypes().get(0);
    }
    Descriptor descriptor = find(file.getMessageTypes());
    if (descriptor == null) {
      throw new IllegalArgumentException("the schema '%s' has no message '%s'".formatted(file.getName(), message));
    }
    return descriptor;
  }

  private Descriptor find(List<Descriptor> among) {
    for (Descriptor type : among) {
      Descriptor found = type.getFullName().equals(message) ? type : find(type.getNestedTypes());
      if (found != null) {
        return found;
      }
    }
    return null;
  }

  /** The file of a schema; IllegalArgumentException if there is none. */
  static FileDescriptor file(SchemaText schema) {
    Map<String, FileDescriptor> files = new HashMap<>(WELL_KNOWN);
    schema.references().forEach(each -> files.put(each.name(), file(each.schema())));
    try {
      FileDescriptorProto file = ProtobufText.isText(schema.text())
          ? ProtobufText.descriptor(schema)
          : FileDescriptorProto.parseFrom(Base64.getDecoder().decode(schema.text()));
      List<FileDescriptor> needed = new ArrayList<>();
      for (String name : file.getDependencyList()) {
        if (!files.containsKey(name)) {
          throw new IllegalArgumentException("the schema lacks '%s', which it imports".formatted(name));
        }
        needed.add(files.get(name));
      }
      return FileDescriptor.buildFrom(file, needed.toArray(FileDescriptor[]::new));
    } catch (InvalidProtocolBufferException | DescriptorValidationException | IllegalArgumentException failure) {
      throw new IllegalArgumentException("the Protobuf schema cannot be used: " + failure.getMessage(),
          failure);
    }
  }

  @Override
  public boolean reads(SchemaText writer, SchemaText reader) {
    return difference(writer, reader).isEmpty();
  }

  /** Why messages of one schema cannot be read by another; empty: they can. */
  String difference(SchemaText writer, SchemaText reader) {
    return difference(descriptor(writer), descriptor(reader));
  }

  private static String difference(Descriptor written, Descriptor read) {
    return written.getFullName().equals(read.getFullName())
        ? ProtobufRows.difference(written, read)
        : "the message is a %s and not a %s".formatted(written.getFullName(), read.getFullName());
  }

  @Override
  public Decoder decoder(SchemaText writer, SchemaText reader) {
    return new MessageDecoder(descriptor(reader), file(writer));
  }

  private static final class MessageDecoder implements Decoder {
    private final Descriptor wanted;
    private final FileDescriptor file;
    private final ProtobufRows rows;
    private final Map<List<Integer>, String> faults = new HashMap<>();

    MessageDecoder(Descriptor wanted, FileDescriptor file) {
      this.wanted = wanted;
      this.file = file;
      rows = new ProtobufRows(wanted);
    }

    @Override
    public void readPrefix(ByteBuffer bytes) {
      List<Integer> path = indexes(bytes);
      String fault = faults.computeIfAbsent(path, this::fault);
      if (!fault.isEmpty()) {
        throw new UnfitValueException(fault);
      }
    }

    /** Why messages of the writer cannot be read; empty: they can. */
    private String fault(List<Integer> path) {
      Descriptor descriptor = message(file, path);
      if (descriptor == null) {
        return "the schema has no message with the indexes %s".formatted(path);
      }
      return difference(descriptor, wanted);
    }

    @Override
    public InternalRow read(ByteBuffer bytes) throws IOException {
      int from = bytes.arrayOffset() + bytes.position();
      return rows.row(DynamicMessage.newBuilder(wanted).mergeFrom(bytes.array(), from, bytes.remaining()).build());
    }
  }

  /** The indexes of a message in its file, which Confluent's wire format has between a schema's id and the value. */
  static List<Integer> indexes(ByteBuffer bytes) {
    List<Integer> path = new ArrayList<>();
    int count = number(bytes);
    if (count < 0 || count > bytes.remaining()) {
      throw new UnfitValueException("the indexes of its message are damaged");
    }
    for (int index = 0; index < count; index++) {
      path.add(number(bytes));
    }
    return path.isEmpty() ? List.of(0) : path;
  }

  /** The message with these indexes; null if there is none. */
  static Descriptor message(FileDescriptor file, List<Integer> path) {
    List<Descriptor> among = file.getMessageTypes();
    Descriptor descriptor = null;
    for (int index : path) {
      if (index < 0 || index >= among.size()) {
        return null;
      }
      descriptor = among.get(index);
      among = descriptor.getNestedTypes();
    }
    return descriptor;
  }

  /** A number of Confluent's wire format: zigzag, in groups of seven bits. */
  private static int number(ByteBuffer bytes) {
    int number = 0;
    for (int shift = 0; shift < Integer.SIZE && bytes.hasRemaining(); shift += 7) {
      int next = bytes.get();
      number |= (next & 0x7f) << shift;
      if (next >= 0) {
        return number >>> 1 ^ -(number & 1);
      }
    }
    throw new UnfitValueException("the indexes of its message are damaged");
  }

  @Override
  public Encoder encoder(SchemaText schema, StructType fields) {
    Descriptor descriptor = descriptor(schema);
    ProtobufRows rows = new ProtobufRows(descriptor);
    return new Encoder() {
      @Override
      public void writePrefix(OutputStream out) throws IOException {
        writeIndexes(descriptor, out);
      }

      @Override
      public void write(InternalRow value, OutputStream out) throws IOException {
        rows.message(value).writeTo(out);
      }
    };
  }

  /** Writes the indexes of a message in its file, as {@link #indexes} reads them. */
  static void writeIndexes(Descriptor message, OutputStream out) throws IOException {
    List<Integer> path = new ArrayList<>();
    for (Descriptor type = message; type != null; type = type.getContainingType()) {
      path.add(0, type.getIndex());
    }
    // The first message of a file has a short form.
    if (path.equals(List.of(0))) {
      out.write(0);
      return;
    }
    writeNumber(path.size(), out);
    for (int index : path) {
      writeNumber(index, out);
    }
  }

  private static void writeNumber(int number, OutputStream out) throws IOException {
    int left = number << 1 ^ number >> 31;
    while ((left & ~0x7f) != 0) {
      out.write(left & 0x7f | 0x80);
      left >>>= 7;
    }
    out.write(left);
  }
}
