package jmsbridge.serdes;

import com.google.protobuf.ByteString;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.EnumDescriptor;
import com.google.protobuf.Descriptors.EnumValueDescriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Descriptors.OneofDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.Message;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.math.BigInteger;
import java.time.Instant;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Pattern;

/** Protobuf messages of JSON bodies: the inverse of {@link ProtobufDocuments}. */
final class ProtobufBodies {
  private static final Pattern INTEGER_KEY = Pattern.compile("0|-?[1-9][0-9]{0,19}");
  private static final String TIMESTAMP = "google.protobuf.Timestamp";

  private final Descriptor type;
  /** The fields of each message by the names that they have in bodies. */
  private final Map<Descriptor, Map<String, FieldDescriptor>> fields = new ConcurrentHashMap<>();

  ProtobufBodies(SchemaText schema, String message) {
    type = new ProtobufFormat(message).descriptor(schema);
  }

  /** As {@link BodyEncoder#encode}. */
  byte[] encode(byte[] json, boolean fromXml) {
    Object document = BodyJson.read(json);
    BodyPlace place = BodyPlace.BODY;
    if (fromXml && document instanceof Map<?, ?> root && root.size() == 1) {
      String name = (String) root.keySet().iterator().next();
      if (!names(type).containsKey(name)) {
        document = root.get(name);
        place = place.member(name);
      }
    }
    try {
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      ProtobufFormat.writeIndexes(type, bytes);
      new Run(fromXml).message(type, document, place).writeTo(bytes);
      return bytes.toByteArray();
    } catch (IOException failure) {
      throw new IllegalStateException(failure);
    }
  }

  private Map<String, FieldDescriptor> names(Descriptor message) {
    return fields.computeIfAbsent(message, each -> {
      Map<String, FieldDescriptor> fields = new HashMap<>();
      each.getFields().forEach(field -> fields.put(field.getName(), field));
      each.getFields().forEach(field -> fields.putIfAbsent(field.getJsonName(), field));
      return fields;
    });
  }

  /** Encoding of one body. */
  private final class Run {
    private final boolean fromXml;

    Run(boolean fromXml) {
      this.fromXml = fromXml;
    }

    Message message(Descriptor message, Object value, BodyPlace place) {
      boolean isTimestamp = message.getFullName().equals(TIMESTAMP);
      Instant time = isTimestamp ? BodyValues.instant(value) : null;
      if (time != null) {
        return DynamicMessage.newBuilder(message)
            .setField(message.findFieldByNumber(1), time.getEpochSecond())
            .setField(message.findFieldByNumber(2), time.getNano())
            .buildPartial();
      }
      if (!(value instanceof Map<?, ?> object)) {
        throw place.isNot(value, isTimestamp
            ? "an object or a time with at most 9 digits below the second, such as 2026-11-28T04:00:00.5Z"
            : "an object");
      }
      DynamicMessage.Builder builder = DynamicMessage.newBuilder(message);
      Map<OneofDescriptor, String> chosen = new HashMap<>();
      for (Map.Entry<FieldDescriptor, String> member : members(message, object, place).entrySet()) {
        set(builder, member.getKey(), object.get(member.getValue()), place.member(member.getValue()));
        OneofDescriptor oneof = member.getKey().getContainingOneof();
        String former = oneof == null || !builder.hasField(member.getKey()) ? null : chosen.put(oneof, member.getValue());
        if (former != null) {
          throw place.member(member.getValue()).fault("'%s' is of the same oneof, '%s'".formatted(former, oneof.getName()));
        }
      }
      for (FieldDescriptor field : message.getFields()) {
        if (field.isRequired() && !builder.hasField(field)) {
          throw place.member(field.getName()).fault("it is missing, and the schema requires it");
        }
      }
      return builder.buildPartial();
    }

    /** The members by the fields that they stand for. */
    private Map<FieldDescriptor, String> members(Descriptor message, Map<?, ?> object, BodyPlace place) {
      Map<FieldDescriptor, String> members = new LinkedHashMap<>();
      Map<String, FieldDescriptor> names = names(message);
      for (Object key : object.keySet()) {
        String member = (String) key;
        String name = BodyValues.field(member, fromXml, names::containsKey);
        if (name == null) {
          throw place.member(member).fault("the schema has no such field");
        }
        String former = members.putIfAbsent(names.get(name), member);
        if (former != null) {
          throw place.member(member).fault("'%s' stands for the same field".formatted(former));
        }
      }
      return members;
    }

    private void set(DynamicMessage.Builder builder, FieldDescriptor field, Object value, BodyPlace place) {
      if (value == null || isEmpty(field, value)) {
        return;
      }
      if (field.isMapField()) {
        addEntries(builder, field, value, place);
      } else if (!field.isRepeated()) {
        builder.setField(field, value(field, value, place));
      } else if (value instanceof List<?> list) {
        int index = 0;
        for (Object element : list) {
          builder.addRepeatedField(field, value(field, element, place.element(index++)));
        }
      } else if (fromXml) {
        builder.addRepeatedField(field, value(field, value, place));
      } else {
        throw place.isNot(value, "an array");
      }
    }

    /** Whether a value is an empty text of XML for a field that may be absent and takes no texts. */
    private boolean isEmpty(FieldDescriptor field, Object value) {
      boolean takesText = field.getType() == FieldDescriptor.Type.STRING || field.getType() == FieldDescriptor.Type.BYTES;
      return fromXml && "".equals(value) && field.hasPresence() && !takesText;
    }

    private void addEntries(DynamicMessage.Builder builder, FieldDescriptor field, Object value, BodyPlace place) {
      if (!(value instanceof Map<?, ?> object)) {
        throw place.isNot(value, "an object");
      }
      FieldDescriptor key = field.getMessageType().findFieldByNumber(1);
      FieldDescriptor content = field.getMessageType().findFieldByNumber(2);
      for (Map.Entry<?, ?> entry : object.entrySet()) {
        String name = (String) entry.getKey();
        Object mapKey = key(key, name);
        if (mapKey == null) {
          throw place.member(name).fault("its name is not a key of the type " + name(key));
        }
        builder.addRepeatedField(field, DynamicMessage.newBuilder(field.getMessageType())
            .setField(key, mapKey)
            .setField(content, value(content, entry.getValue(), place.member(name)))
            .buildPartial());
      }
    }

    private Object key(FieldDescriptor key, String name) {
      return switch (key.getType()) {
        case STRING -> name;
        case BOOL -> name.equals("true") || name.equals("false") ? Boolean.valueOf(name) : null;
        default -> INTEGER_KEY.matcher(name).matches() ? integer(key, new BodyJson.Written(name)) : null;
      };
    }

    private Object value(FieldDescriptor field, Object value, BodyPlace place) {
      if (field.getJavaType() == FieldDescriptor.JavaType.MESSAGE) {
        return message(field.getMessageType(), value, place);
      }
      Object converted = scalar(field, value);
      if (converted == null) {
        throw place.isNot(value, wanted(field));
      }
      return converted;
    }

    private Object scalar(FieldDescriptor field, Object value) {
      return switch (field.getType()) {
        case BOOL -> BodyValues.flag(value, fromXml);
        case STRING -> value instanceof String ? value : null;
        case BYTES -> {
          byte[] bytes = BodyValues.bytes(value);
          yield bytes == null ? null : ByteString.copyFrom(bytes);
        }
        case ENUM -> symbol(field.getEnumType(), value);
        case FLOAT -> BodyValues.single(BodyValues.number(value, fromXml));
        case DOUBLE -> BodyValues.real(BodyValues.number(value, fromXml));
        default -> integer(field, BodyValues.number(value, fromXml));
      };
    }

    private EnumValueDescriptor symbol(EnumDescriptor type, Object value) {
      EnumValueDescriptor named = value instanceof String text ? type.findValueByName(text) : null;
      BigInteger number = named != null ? null : BodyValues.integer(BodyValues.number(value, fromXml),
          BigInteger.valueOf(Integer.MIN_VALUE), BigInteger.valueOf(Integer.MAX_VALUE));
      if (number == null) {
        return named;
      }
      return type.isClosed()
          ? type.findValueByNumber(number.intValue())
          : type.findValueByNumberCreatingIfUnknown(number.intValue());
    }
  }

  private static Object integer(FieldDescriptor field, BodyJson.Written number) {
    boolean isUnsigned = switch (field.getType()) {
      case UINT32, UINT64, FIXED32, FIXED64 -> true;
      default -> false;
    };
    boolean isInt = field.getJavaType() == FieldDescriptor.JavaType.INT;
    int bits = (isInt ? Integer.SIZE : Long.SIZE) - (isUnsigned ? 0 : 1);
    BigInteger end = BigInteger.ONE.shiftLeft(bits);
    BigInteger integer = BodyValues.integer(number, isUnsigned ? BigInteger.ZERO : end.negate(), end.subtract(BigInteger.ONE));
    if (integer == null) {
      return null;
    }
    // Numbers without a sign have the same bits as the Java type with one.
    return isInt ? (Object) integer.intValue() : (Object) integer.longValue();
  }

  private static String name(FieldDescriptor field) {
    return field.getType().name().toLowerCase(Locale.ROOT);
  }

  /** What a field without others in it wants, in words. */
  private static String wanted(FieldDescriptor field) {
    return switch (field.getType()) {
      case BOOL -> "true or false";
      case STRING -> "a text";
      case BYTES -> "a text in base64";
      case ENUM -> "a value of the enum " + field.getEnumType().getFullName();
      default -> "a number of the type " + name(field);
    };
  }
}
