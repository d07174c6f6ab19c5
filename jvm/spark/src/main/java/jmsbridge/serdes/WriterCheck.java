package jmsbridge.serdes;

import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;

/** Check that values, each of a schema of its own, can be read by one that a route names. */
final class WriterCheck implements BodyCheck {
  private static final int MOST_IDS = 1_000;

  private final NamedSchema named;
  private final Documents documents;
  /** Reason by the id of the writer's schema; empty: there is none. */
  private final Map<Integer, String> faults = new Recent<>(MOST_IDS);

  WriterCheck(NamedSchema named, Documents documents) {
    this.named = named;
    this.documents = documents;
  }

  @Override
  public String fault(byte[] body) {
    try {
      if (!Documents.haveSchema(body)) {
        return "the body has no schema: its first byte is not 0, as in Confluent's wire format";
      }
      documents.read(body);
      int id = Documents.id(body);
      String fault = faults.get(id);
      if (fault == null) {
        fault = faultOf(documents.schema(id));
        faults.put(id, fault);
      }
      return fault.isEmpty() ? null : "the schema with the id %d does not fit %s: %s".formatted(id, named.name(), fault);
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
