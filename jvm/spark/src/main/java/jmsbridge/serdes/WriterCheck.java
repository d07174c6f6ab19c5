package jmsbridge.serdes;

import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;

/** Check that values, each of a schema of its own, can be read by one that a route names. */
final class WriterCheck implements BodyCheck {
  private static final int MOST_SCHEMAS = 1_000;

  private final NamedSchema named;
  private final Documents documents;
  /** Reason by the words for the writer's schema; empty: there is none. */
  private final Map<String, String> faults = new Recent<>(MOST_SCHEMAS);

  WriterCheck(NamedSchema named, Documents documents) {
    this.named = named;
    this.documents = documents;
  }

  @Override
  public String fault(byte[] body, BodyOrigin origin) {
    try {
      if (documents == null || !documents.haveSchema(body, origin)) {
        return "the body has no schema: its first byte is not 0, as in Confluent's wire format";
      }
      documents.read(body, origin);
      WriterSchema writer = documents.writer(body, origin);
      String fault = faults.get(writer.words());
      if (fault == null) {
        fault = faultOf(writer.typed());
        faults.put(writer.words(), fault);
      }
      return fault.isEmpty() ? null : "%s does not fit %s: %s".formatted(writer.words(), named.name(), fault);
    } catch (UnfitValueException unreadable) {
      return unreadable.getMessage();
    }
  }

  private String faultOf(SchemaRegistry.Typed writer) {
    if (!writer.type().equals(named.type())) {
      return "it is of " + writer.type();
    }
    if (named.type().equals("PROTOBUF")) {
      ProtobufFormat format = new ProtobufFormat(named.message());
      return format.difference(writer.schema(), named.schema());
    }
    Schema reader = AvroFormat.parsed(named.schema());
    return SchemaCompatibility.checkReaderWriterCompatibility(reader, AvroFormat.parsed(writer.schema()))
        .getResult().getIncompatibilities().stream()
        .map(each -> "%s at %s".formatted(each.getMessage(), each.getLocation())).findFirst().orElse("");
  }
}
