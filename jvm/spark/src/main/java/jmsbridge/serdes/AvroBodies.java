package jmsbridge.serdes;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.math.BigInteger;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.avro.AvroRuntimeException;
import org.apache.avro.LogicalTypes;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.EncoderFactory;

/** Avro values of JSON bodies: the inverse of {@link AvroDocuments}. */
final class AvroBodies {
  private final Schema schema;
  /** The value of each field that has a default, as Avro writes it. */
  private final Map<Schema.Field, byte[]> defaults = new IdentityHashMap<>();

  AvroBodies(SchemaText text) {
    schema = AvroFormat.parsed(text);
    if (AvroFormat.requiresItself(schema)) {
      throw new IllegalArgumentException("it has no values: a record requires a field of its own type");
    }
    try {
      collect(schema, new IdentityHashMap<>());
    } catch (AvroRuntimeException | IOException failure) {
      throw new IllegalArgumentException("the Avro schema cannot be used: " + failure.getMessage(), failure);
    }
  }

  private void collect(Schema type, Map<Schema, Boolean> seen) throws IOException {
    if (seen.put(type, true) != null) {
      return;
    }
    switch (type.getType()) {
      case RECORD -> {
        for (Schema.Field field : type.getFields()) {
          if (field.hasDefaultValue()) {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            BinaryEncoder out = EncoderFactory.get().directBinaryEncoder(bytes, null);
            new GenericDatumWriter<>(field.schema()).write(GenericData.get().getDefaultValue(field), out);
            defaults.put(field, bytes.toByteArray());
          }
          collect(field.schema(), seen);
        }
      }
      case UNION -> {
        for (Schema branch : type.getTypes()) {
          collect(branch, seen);
        }
      }
      case ARRAY -> collect(type.getElementType(), seen);
      case MAP -> collect(type.getValueType(), seen);
      default -> {
        // The others contain none.
      }
    }
  }

  /** As {@link BodyEncoder#encode}. */
  byte[] encode(byte[] json, boolean fromXml) {
    Object document = BodyJson.read(json);
    BodyPlace place = BodyPlace.BODY;
    if (fromXml && document instanceof Map<?, ?> root && root.size() == 1) {
      String name = (String) root.keySet().iterator().next();
      List<Schema> types = schema.isUnion() ? schema.getTypes() : List.of(schema);
      if (types.stream().noneMatch(each -> each.getType() == Schema.Type.RECORD && each.getField(name) != null)) {
        document = root.get(name);
        place = place.member(name);
      }
    }
    try {
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      new Run(fromXml, bytes).write(schema, document, place);
      return bytes.toByteArray();
    } catch (IOException failure) {
      throw new IllegalStateException(failure);
    }
  }

  /** Encoding of one body. */
  private final class Run {
    private final boolean fromXml;
    private final ByteArrayOutputStream bytes;
    private final BinaryEncoder out;

    Run(boolean fromXml, ByteArrayOutputStream bytes) {
      this.fromXml = fromXml;
      this.bytes = bytes;
      out = EncoderFactory.get().directBinaryEncoder(bytes, null);
    }

    void write(Schema type, Object value, BodyPlace place) throws IOException {
      switch (type.getType()) {
        case RECORD -> writeRecord(type, object(value, place), place);
        case UNION -> writeBranch(type, value, place);
        case ARRAY -> writeArray(type.getElementType(), value, place);
        case MAP -> writeMap(type.getValueType(), object(value, place), place);
        case NULL -> {
          if (value != null) {
            throw place.isNot(value, wanted(type));
          }
        }
        default -> {
          Object written = scalar(type, value);
          if (written == null) {
            throw place.isNot(value, wanted(type));
          }
          writeScalar(type, written);
        }
      }
    }

    @SuppressWarnings("unchecked")
    private Map<String, Object> object(Object value, BodyPlace place) {
      if (!(value instanceof Map)) {
        throw place.isNot(value, "an object");
      }
      return (Map<String, Object>) value;
    }

    private void writeRecord(Schema type, Map<String, Object> object, BodyPlace place) throws IOException {
      Map<String, String> members = new HashMap<>();
      String wrong = collect(type, object, members);
      if (wrong != null) {
        String field = BodyValues.field(wrong, fromXml, each -> type.getField(each) != null);
        throw place.member(wrong).fault(field == null
            ? "the schema has no such field"
            : "'%s' stands for the same field".formatted(members.get(field)));
      }
      for (Schema.Field field : type.getFields()) {
        String member = members.get(field.name());
        if (member != null) {
          write(field.schema(), object.get(member), place.member(member));
        } else if (defaults.containsKey(field)) {
          out.writeFixed(defaults.get(field));
        } else if (field.schema().isNullable()) {
          write(field.schema(), null, place);
        } else {
          throw place.member(field.name()).fault("it is missing, and the schema has no default for it");
        }
      }
      if (bytes.size() > Document.MOST_BYTES) {
        throw new UnfitValueException(
            String.format(Locale.ROOT, "the body has more than %,d bytes as Avro", Document.MOST_BYTES));
      }
    }

    /** Collects the members by the fields that they stand for; returns the first without a field of its own. */
    private String collect(Schema type, Map<String, Object> object, Map<String, String> members) {
      for (String member : object.keySet()) {
        String field = BodyValues.field(member, fromXml, name -> type.getField(name) != null);
        if (field == null || members.putIfAbsent(field, member) != null) {
          return member;
        }
      }
      return null;
    }

    private void writeArray(Schema type, Object value, BodyPlace place) throws IOException {
      boolean isSingle = fromXml && value != null && !(value instanceof List);
      if (!isSingle && !(value instanceof List)) {
        throw place.isNot(value, "an array");
      }
      List<?> elements = isSingle ? List.of(value) : (List<?>) value;
      out.writeArrayStart();
      out.setItemCount(elements.size());
      int index = 0;
      for (Object element : elements) {
        out.startItem();
        write(type, element, isSingle ? place : place.element(index++));
      }
      out.writeArrayEnd();
    }

    private void writeMap(Schema type, Map<String, Object> object, BodyPlace place) throws IOException {
      out.writeMapStart();
      out.setItemCount(object.size());
      for (Map.Entry<String, Object> entry : object.entrySet()) {
        out.startItem();
        out.writeString(entry.getKey());
        write(type, entry.getValue(), place.member(entry.getKey()));
      }
      out.writeMapEnd();
    }

    private void writeBranch(Schema union, Object value, BodyPlace place) throws IOException {
      int chosen = branch(union.getTypes(), value);
      if (chosen < 0) {
        throw place.isNot(value, wanted(union));
      }
      out.writeIndex(chosen);
      Schema type = union.getTypes().get(chosen);
      write(type, isNull(type) ? null : value, place);
    }

    /** The first branch that the value fits by a look at it alone; the only one besides null gives the reason. */
    private int branch(List<Schema> branches, Object value) {
      for (int index = 0; index < branches.size(); index++) {
        if (fits(branches.get(index), value)) {
          return index;
        }
      }
      int choices = 0;
      int last = -1;
      int empty = -1;
      int array = -1;
      for (int index = 0; index < branches.size(); index++) {
        Schema branch = branches.get(index);
        empty = isNull(branch) ? index : empty;
        array = branch.getType() == Schema.Type.ARRAY ? index : array;
        choices += isNull(branch) ? 0 : 1;
        last = isNull(branch) ? last : index;
      }
      if (fromXml && "".equals(value) && empty >= 0) {
        return empty;
      }
      if (fromXml && array >= 0) {
        return array;
      }
      return choices == 1 ? last : -1;
    }

    private boolean fits(Schema type, Object value) {
      return switch (type.getType()) {
        case RECORD -> value instanceof Map && fitsRecord(type, object(value, null));
        case MAP -> value instanceof Map;
        case ARRAY -> value instanceof List;
        case NULL -> value == null;
        default -> scalar(type, value) != null;
      };
    }

    private boolean fitsRecord(Schema type, Map<String, Object> object) {
      Map<String, String> members = new HashMap<>();
      return collect(type, object, members) == null && type.getFields().stream().allMatch(
          each -> members.containsKey(each.name()) || each.hasDefaultValue() || each.schema().isNullable());
    }

    /** What a value is in a type without others in it; null: not a value of it. */
    private Object scalar(Schema type, Object value) {
      return switch (type.getType()) {
        case BOOLEAN -> BodyValues.flag(value, fromXml);
        case STRING -> value instanceof String ? value : null;
        case ENUM -> value instanceof String text && type.hasEnumSymbol(text) ? type.getEnumOrdinal(text) : null;
        case INT, LONG -> integer(type, value);
        case FLOAT -> BodyValues.single(BodyValues.number(value, fromXml));
        case DOUBLE -> BodyValues.real(BodyValues.number(value, fromXml));
        default -> bytes(type, value);
      };
    }

    private Long integer(Schema type, Object value) {
      boolean isInt = type.getType() == Schema.Type.INT;
      BigInteger number = BodyValues.integer(BodyValues.number(value, fromXml),
          BigInteger.valueOf(isInt ? Integer.MIN_VALUE : Long.MIN_VALUE),
          BigInteger.valueOf(isInt ? Integer.MAX_VALUE : Long.MAX_VALUE));
      if (number != null) {
        return number.longValue();
      }
      if (type.getLogicalType() instanceof LogicalTypes.Date) {
        return BodyValues.days(value);
      }
      int digits = digits(type);
      return digits == 0 ? null : BodyValues.time(value, digits);
    }

    private byte[] bytes(Schema type, Object value) {
      boolean isFixed = type.getType() == Schema.Type.FIXED;
      if (type.getLogicalType() instanceof LogicalTypes.Decimal decimal) {
        BigInteger unscaled = BodyValues.unscaled(
            BodyValues.number(value, fromXml), decimal.getPrecision(), decimal.getScale());
        return unscaled == null || !isFixed ? unscaled == null ? null : unscaled.toByteArray()
            : BodyValues.bytes(unscaled, type.getFixedSize());
      }
      byte[] bytes = BodyValues.bytes(value);
      return bytes != null && isFixed && bytes.length != type.getFixedSize() ? null : bytes;
    }

    private void writeScalar(Schema type, Object written) throws IOException {
      switch (type.getType()) {
        case BOOLEAN -> out.writeBoolean((Boolean) written);
        case STRING -> out.writeString((String) written);
        case ENUM -> out.writeEnum((Integer) written);
        case INT -> out.writeInt(((Long) written).intValue());
        case LONG -> out.writeLong((Long) written);
        case FLOAT -> out.writeFloat((Float) written);
        case DOUBLE -> out.writeDouble((Double) written);
        case BYTES -> out.writeBytes((byte[]) written);
        default -> out.writeFixed((byte[]) written);
      }
    }
  }

  private static boolean isNull(Schema type) {
    return type.getType() == Schema.Type.NULL;
  }

  /** Digits below a second of a point in time; 0 for other types. */
  private static int digits(Schema type) {
    if (type.getLogicalType() instanceof LogicalTypes.TimestampMillis) {
      return 3;
    }
    return type.getLogicalType() instanceof LogicalTypes.TimestampMicros ? 6 : 0;
  }

  /** What a type wants, in words. */
  private static String wanted(Schema type) {
    return switch (type.getType()) {
      case NULL -> "null";
      case BOOLEAN -> "true or false";
      case STRING -> "a text";
      case ENUM -> "a symbol of the enum " + type.getFullName();
      case UNION -> "a value of the union of "
          + type.getTypes().stream().map(Schema::getFullName).collect(Collectors.joining(", "));
      case INT, LONG -> wantedInteger(type);
      case FLOAT, DOUBLE -> "a number of the type " + type.getName();
      default -> wantedBytes(type);
    };
  }

  private static String wantedInteger(Schema type) {
    String number = "a number of the type " + type.getName();
    if (type.getLogicalType() instanceof LogicalTypes.Date) {
      return number + " or a date such as 2026-11-28";
    }
    int digits = digits(type);
    return digits == 0 ? number
        : "%s or a time with at most %d digits below the second, such as 2026-11-28T04:00:00.5Z".formatted(number, digits);
  }

  private static String wantedBytes(Schema type) {
    if (type.getLogicalType() instanceof LogicalTypes.Decimal decimal) {
      return "a number of the type decimal(%d,%d)".formatted(decimal.getPrecision(), decimal.getScale());
    }
    return type.getType() == Schema.Type.FIXED
        ? "%d bytes in base64".formatted(type.getFixedSize())
        : "a text in base64";
  }
}
