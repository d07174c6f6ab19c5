package jmsbridge.serdes;

import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.squareup.wire.schema.CoreLoader;
import com.squareup.wire.schema.ErrorCollector;
import com.squareup.wire.schema.Linker;
import com.squareup.wire.schema.Loader;
import com.squareup.wire.schema.Location;
import com.squareup.wire.schema.ProtoFile;
import com.squareup.wire.schema.Schema;
import com.squareup.wire.schema.internal.SchemaEncoder;
import com.squareup.wire.schema.internal.parser.ProtoParser;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Compiler of Protobuf schemas that a registry gives as the text of a {@code .proto} file, by the library Wire. */
final class ProtobufText {
  /** Path of the file, which no other imports. */
  private static final String PATH = "schema.proto";

  private ProtobufText() {}

  /** Whether a schema is text; if not, it is base64. */
  static boolean isText(String schema) {
    return schema.indexOf(';') >= 0 || schema.indexOf('{') >= 0;
  }

  /** The descriptor of a schema that is text; IllegalArgumentException if it cannot be compiled. */
  static FileDescriptorProto descriptor(SchemaText schema) {
    Map<String, String> imports = new HashMap<>();
    collect(schema.references(), imports);
    try {
      // All that is imported is linked too, and files of one package may import each other.
      Schema linked = new Linker(new Imports(imports), new ErrorCollector(), true, true)
          .link(List.of(parsed(PATH, schema.text())));
      return FileDescriptorProto.parseFrom(
          new SchemaEncoder(linked).encode(linked.protoFile(PATH)).toByteArray());
    } catch (Exception failure) {
      // Code in Kotlin throws what it likes.
      throw new IllegalArgumentException(failure.getMessage(), failure);
    }
  }

  private static void collect(List<SchemaText.Reference> references, Map<String, String> texts) {
    for (SchemaText.Reference reference : references) {
      if (!isText(reference.schema().text())) {
        throw new IllegalArgumentException(
            "it is text and imports '%s', which is a descriptor: register both alike".formatted(reference.name()));
      }
      texts.put(reference.name(), reference.schema().text());
      collect(reference.schema().references(), texts);
    }
  }

  private static ProtoFile parsed(String path, String text) {
    return ProtoFile.Companion.get(ProtoParser.Companion.parse(Location.get(path), text));
  }

  /** Files that schemas import: those that they refer to, and Google's own. */
  private record Imports(Map<String, String> texts) implements Loader {
    @Override
    public ProtoFile load(String path) {
      String text = texts.get(path);
      if (text != null) {
        return parsed(path, text);
      }
      try {
        return CoreLoader.INSTANCE.load(path);
      } catch (IllegalStateException unknown) {
        throw new IllegalArgumentException("the schema lacks '%s', which it imports".formatted(path), unknown);
      }
    }

    @Override
    public Loader withErrors(ErrorCollector errors) {
      return this;
    }
  }
}
