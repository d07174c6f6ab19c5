package jmsbridge.streams;

import java.util.Arrays;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** Types of fields that are read and written as JSON without Spark. */
enum JsonType {
  TEXT(DataTypes.StringType),
  LONG(DataTypes.LongType),
  INTEGER(DataTypes.IntegerType),
  DOUBLE(DataTypes.DoubleType),
  BOOLEAN(DataTypes.BooleanType),
  TIME(DataTypes.TimestampType);

  private final DataType type;

  JsonType(DataType type) {
    this.type = type;
  }

  /** The one of a type; null: another one. */
  static JsonType of(DataType type) {
    return Arrays.stream(values()).filter(each -> each.type.equals(type)).findFirst().orElse(null);
  }

  /** The types of fields, in their order; null in the place of others. */
  static JsonType[] of(StructType fields) {
    return Arrays.stream(fields.fields()).map(each -> of(each.dataType())).toArray(JsonType[]::new);
  }
}
