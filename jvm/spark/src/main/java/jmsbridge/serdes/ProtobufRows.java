package jmsbridge.serdes;

import com.google.protobuf.ByteString;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.EnumValueDescriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Descriptors.OneofDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.Message;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Rows of the messages of a type, and messages of rows.
 *
 * <p>A field that can be absent is null then; others have the default of their type. Unsigned numbers have the next
 * larger type. An enum is its name, or the number that has none.
 */
final class ProtobufRows {
  private static final String TIMESTAMP = "google.protobuf.Timestamp";
  private static final long MOST_UINT32 = 0xffffffffL;
  private static final DataType UINT64 = DataTypes.createDecimalType(20, 0);
  private static final int MICROS = 1_000_000;
  private static final int NANOS = 1_000;

  private final Descriptor descriptor;
  private final StructField[] types;
  private final List<FieldDescriptor> fields;
  private final Map<FieldDescriptor, ProtobufRows> nested = new LinkedHashMap<>();

  ProtobufRows(Descriptor descriptor) {
    this.descriptor = descriptor;
    types = type(descriptor).fields();
    fields = descriptor.getFields();
    for (FieldDescriptor field : fields) {
      FieldDescriptor content = field.isMapField() ? value(field) : field;
      if (isMessage(content) && !isTimestamp(content)) {
        nested.put(field, new ProtobufRows(content.getMessageType()));
      }
    }
  }

  /** Fields of the messages; IllegalArgumentException for a message that contains itself. */
  static StructType type(Descriptor descriptor) {
    return type(descriptor, List.of());
  }

  private static StructType type(Descriptor descriptor, List<String> within) {
    if (within.contains(descriptor.getFullName())) {
      throw new IllegalArgumentException(
          "the message %s contains itself: Spark's types have an end".formatted(descriptor.getFullName()));
    }
    List<String> path = new ArrayList<>(within);
    path.add(descriptor.getFullName());
    StructType type = new StructType();
    for (FieldDescriptor field : descriptor.getFields()) {
      type = type.add(field.getName(), type(field, path), field.hasPresence() && !field.isRequired());
    }
    return type;
  }

  private static DataType type(FieldDescriptor field, List<String> path) {
    if (field.isMapField()) {
      FieldDescriptor key = field.getMessageType().findFieldByNumber(1);
      return DataTypes.createMapType(single(key, path), single(value(field), path), false);
    }
    DataType single = single(field, path);
    return field.isRepeated() ? DataTypes.createArrayType(single, false) : single;
  }

  private static DataType single(FieldDescriptor field, List<String> path) {
    return switch (field.getType()) {
      case INT32, SINT32, SFIXED32 -> DataTypes.IntegerType;
      case UINT32, FIXED32, INT64, SINT64, SFIXED64 -> DataTypes.LongType;
      case UINT64, FIXED64 -> UINT64;
      case FLOAT -> DataTypes.FloatType;
      case DOUBLE -> DataTypes.DoubleType;
      case BOOL -> DataTypes.BooleanType;
      case STRING, ENUM -> DataTypes.StringType;
      case BYTES -> DataTypes.BinaryType;
      case MESSAGE, GROUP -> isTimestamp(field) ? DataTypes.TimestampType : type(field.getMessageType(), path);
    };
  }

  private static FieldDescriptor value(FieldDescriptor map) {
    return map.getMessageType().findFieldByNumber(2);
  }

  private static boolean isMessage(FieldDescriptor field) {
    return field.getJavaType() == FieldDescriptor.JavaType.MESSAGE;
  }

  private static boolean isTimestamp(FieldDescriptor field) {
    return isMessage(field) && field.getMessageType().getFullName().equals(TIMESTAMP);
  }

  /** Why messages of one type cannot be read as those of another; empty: they can. */
  static String difference(Descriptor written, Descriptor read) {
    return difference(written, read, List.of());
  }

  private static String difference(Descriptor written, Descriptor read, List<String> within) {
    if (within.contains(read.getFullName())) {
      return "";
    }
    List<String> path = new ArrayList<>(within);
    path.add(read.getFullName());
    for (FieldDescriptor field : read.getFields()) {
      FieldDescriptor other = written.findFieldByNumber(field.getNumber());
      if (other == null) {
        continue;
      }
      if (!encoding(other).equals(encoding(field)) || other.isMapField() != field.isMapField()) {
        return "the field %s was written as %s, and cannot be read as %s".formatted(field.getFullName(),
            text(other), text(field));
      }
      if (isMessage(field)) {
        String inner = difference(other.getMessageType(), field.getMessageType(), path);
        if (!inner.isEmpty()) {
          return inner;
        }
      }
    }
    return "";
  }

  private static String text(FieldDescriptor field) {
    return field.getType().name().toLowerCase(Locale.ROOT);
  }

  /** Types with equal encodings can be read as each other, as Protobuf's guide to updates says. */
  private static String encoding(FieldDescriptor field) {
    return switch (field.getType()) {
      case INT32, INT64, UINT32, UINT64, BOOL, ENUM -> "varint";
      case SINT32, SINT64 -> "zigzag";
      case FIXED32, SFIXED32 -> "fixed32";
      case FIXED64, SFIXED64 -> "fixed64";
      case STRING, BYTES -> "bytes";
      default -> field.getType().name();
    };
  }

  InternalRow row(Message message) {
    Object[] values = new Object[fields.size()];
    for (int index = 0; index < values.length; index++) {
      FieldDescriptor field = fields.get(index);
      boolean isAbsent = field.hasPresence() && !message.hasField(field) && !field.hasDefaultValue();
      values[index] = isAbsent ? null : read(field, message.getField(field));
    }
    return new GenericInternalRow(values);
  }

  private Object read(FieldDescriptor field, Object value) {
    if (field.isMapField()) {
      // The last of several values of a key counts.
      Map<Object, Object> entries = new LinkedHashMap<>();
      for (Object element : (List<?>) value) {
        Message entry = (Message) element;
        FieldDescriptor key = field.getMessageType().findFieldByNumber(1);
        entries.put(readSingle(field, key, entry.getField(key)),
            readSingle(field, value(field), entry.getField(value(field))));
      }
      return new ArrayBasedMapData(new GenericArrayData(entries.keySet().toArray()),
          new GenericArrayData(entries.values().toArray()));
    }
    if (field.isRepeated()) {
      return new GenericArrayData(((List<?>) value).stream().map(each -> readSingle(field, field, each)).toArray());
    }
    return readSingle(field, field, value);
  }

  private Object readSingle(FieldDescriptor owner, FieldDescriptor field, Object value) {
    return switch (field.getType()) {
      case UINT32, FIXED32 -> Integer.toUnsignedLong((Integer) value);
      case UINT64, FIXED64 -> Decimal.apply(new BigDecimal(
          new BigInteger(Long.toUnsignedString((Long) value))), 20, 0);
      case STRING -> UTF8String.fromString((String) value);
      case BYTES -> ((ByteString) value).toByteArray();
      case ENUM -> UTF8String.fromString(name((EnumValueDescriptor) value));
      case MESSAGE, GROUP -> isTimestamp(field) ? micros((Message) value) : nested.get(owner).row((Message) value);
      default -> value;
    };
  }

  private static String name(EnumValueDescriptor value) {
    return value.getIndex() < 0 ? String.valueOf(value.getNumber()) : value.getName();
  }

  private static long micros(Message timestamp) {
    Descriptor type = timestamp.getDescriptorForType();
    long seconds = (Long) timestamp.getField(type.findFieldByNumber(1));
    int nanos = (Integer) timestamp.getField(type.findFieldByNumber(2));
    return Math.addExact(Math.multiplyExact(seconds, MICROS), nanos / NANOS);
  }

  /** The message with the fields of a row; null leaves a field out. */
  DynamicMessage message(InternalRow row) {
    DynamicMessage.Builder message = DynamicMessage.newBuilder(descriptor);
    for (int index = 0; index < types.length; index++) {
      if (row.isNullAt(index)) {
        continue;
      }
      FieldDescriptor field = fields.get(index);
      OneofDescriptor choice = field.getRealContainingOneof();
      if (choice != null && message.hasOneof(choice)) {
        throw new UnfitValueException("several fields of the oneof %s have values".formatted(choice.getFullName()));
      }
      write(field, types[index].dataType(), row.get(index, types[index].dataType()), message);
    }
    return message.build();
  }

  private void write(FieldDescriptor field, DataType type, Object value, DynamicMessage.Builder message) {
    if (field.isMapField()) {
      writeMap(field, (MapType) type, (MapData) value, message);
    } else if (field.isRepeated()) {
      for (Object element : elements((ArrayData) value, ((ArrayType) type).elementType(), field)) {
        message.addRepeatedField(field, writtenSingle(field, field, element));
      }
    } else {
      message.setField(field, writtenSingle(field, field, value));
    }
  }

  private void writeMap(FieldDescriptor field, MapType type, MapData value, DynamicMessage.Builder message) {
    FieldDescriptor key = field.getMessageType().findFieldByNumber(1);
    List<Object> keys = elements(value.keyArray(), type.keyType(), field);
    List<Object> values = elements(value.valueArray(), type.valueType(), field);
    for (int index = 0; index < keys.size(); index++) {
      message.addRepeatedField(field, DynamicMessage.newBuilder(field.getMessageType())
          .setField(key, writtenSingle(field, key, keys.get(index)))
          .setField(value(field), writtenSingle(field, value(field), values.get(index))).build());
    }
  }

  private static List<Object> elements(ArrayData array, DataType type, FieldDescriptor field) {
    List<Object> elements = new ArrayList<>();
    for (int index = 0; index < array.numElements(); index++) {
      if (array.isNullAt(index)) {
        throw new UnfitValueException("%s has an element without a value".formatted(field.getFullName()));
      }
      elements.add(array.get(index, type));
    }
    return elements;
  }

  private Object writtenSingle(FieldDescriptor owner, FieldDescriptor field, Object value) {
    return switch (field.getType()) {
      case UINT32, FIXED32 -> unsigned(field, (Long) value);
      case UINT64, FIXED64 -> unsigned(field, ((Decimal) value).toJavaBigDecimal().toBigInteger());
      case STRING -> value.toString();
      case BYTES -> ByteString.copyFrom((byte[]) value);
      case ENUM -> number(field, value.toString());
      case MESSAGE, GROUP -> isTimestamp(field)
          ? timestamp(field.getMessageType(), (Long) value)
          : nested.get(owner).message((InternalRow) value);
      default -> value;
    };
  }

  private static int unsigned(FieldDescriptor field, long value) {
    if (value < 0 || value > MOST_UINT32) {
      throw new UnfitValueException("%d is not a value of %s, a %s".formatted(value, field.getFullName(), text(field)));
    }
    return (int) value;
  }

  private static long unsigned(FieldDescriptor field, BigInteger value) {
    if (value.signum() < 0 || value.bitLength() > Long.SIZE) {
      throw new UnfitValueException("%d is not a value of %s, a %s".formatted(value, field.getFullName(), text(field)));
    }
    return value.longValue();
  }

  private static EnumValueDescriptor number(FieldDescriptor field, String name) {
    EnumValueDescriptor constant = field.getEnumType().findValueByName(name);
    if (constant == null && name.matches("-?[0-9]{1,9}") && !field.getEnumType().isClosed()) {
      return field.getEnumType().findValueByNumberCreatingIfUnknown(Integer.parseInt(name));
    }
    if (constant == null) {
      throw new UnfitValueException("'%s' is not a value of %s".formatted(name, field.getEnumType().getFullName()));
    }
    return constant;
  }

  private static DynamicMessage timestamp(Descriptor type, long micros) {
    return DynamicMessage.newBuilder(type)
        .setField(type.findFieldByNumber(1), Math.floorDiv(micros, (long) MICROS))
        .setField(type.findFieldByNumber(2), (int) (Math.floorMod(micros, (long) MICROS) * NANOS)).build();
  }
}
