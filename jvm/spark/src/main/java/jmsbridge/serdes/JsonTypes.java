package jmsbridge.serdes;

import com.fasterxml.jackson.core.JacksonException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampType;

/**
 * Types of Spark SQL for the values of a JSON Schema, and JSON Schemas for values of a type.
 *
 * <p>A schema consists of itself, of what it refers to, of all in {@code allOf}, and of the one schema in {@code anyOf}
 * or {@code oneOf} beside null. Together these have to name one type.
 */
final class JsonTypes {
  private static final String TYPE = "type";
  private static final String NULL = "null";
  private static final String OBJECT = "object";
  private static final String STRING = "string";
  private static final String FORMAT = "format";
  private static final String TIME = "date-time";
  private static final String DATE = "date";
  private static final String ENCODING = "contentEncoding";
  private static final String BASE64 = "base64";
  private static final String PROPERTIES = "properties";
  private static final String REQUIRED = "required";
  private static final String MORE = "additionalProperties";
  private static final String ITEMS = "items";

  /** Schema within a text of the registry. */
  private record Place(JsonNode node, SchemaText text) {}

  private record Found(DataType type, boolean isNullable) {}

  private final Map<SchemaText, JsonNode> roots = new HashMap<>();
  /** The schemas around the present one. */
  private final List<JsonNode> around = new ArrayList<>();

  private JsonTypes() {}

  /** Type of the values of a schema; IllegalArgumentException if there is no single one. */
  static DataType of(SchemaText schema) {
    JsonTypes types = new JsonTypes();
    return types.found(new Place(types.root(schema), schema), "").type();
  }

  private JsonNode root(SchemaText schema) {
    return roots.computeIfAbsent(schema, each -> {
      try {
        return JsonSchemas.JSON.readTree(each.text());
      } catch (JacksonException failure) {
        throw new IllegalArgumentException("the text is not a JSON Schema: " + failure.getOriginalMessage(), failure);
      }
    });
  }

  private Found found(Place place, String path) {
    int depth = around.size();
    List<Place> parts = new ArrayList<>();
    boolean isNullable = collect(place, path, parts);
    Set<String> types = types(parts);
    isNullable |= types.remove(NULL);
    if (types.size() != 1) {
      throw new IllegalArgumentException(types.isEmpty()
          ? "the JSON Schema has no type for %s: name one, or give a schema without it".formatted(shown(path))
          : "the JSON Schema has the types %s for %s: give a schema with one of them, or without it"
              .formatted(String.join(", ", types), shown(path)));
    }
    DataType type = switch (types.iterator().next()) {
      case OBJECT -> object(parts, path);
      case "array" -> array(parts, path);
      case STRING -> text(parts);
      case "integer" -> DataTypes.LongType;
      case "number" -> DataTypes.DoubleType;
      case "boolean" -> DataTypes.BooleanType;
      default -> throw new IllegalArgumentException("the JSON Schema has an unknown type for " + shown(path));
    };
    around.subList(depth, around.size()).clear();
    return new Found(type, isNullable);
  }

  private static String shown(String path) {
    return path.isEmpty() ? "the value" : "the field " + path;
  }

  /** Adds what a schema consists of; true if null is one of its alternatives. */
  private boolean collect(Place place, String path, List<Place> parts) {
    JsonNode node = place.node();
    if (parts.stream().anyMatch(each -> each.node() == node)) {
      return false;
    }
    if (around.stream().anyMatch(each -> each == node)) {
      throw new IllegalArgumentException(
          "the JSON Schema of %s contains itself: give a schema without it".formatted(shown(path)));
    }
    around.add(node);
    parts.add(place);
    boolean isNullable = false;
    if (node.path("$ref").isTextual()) {
      isNullable = collect(target(node.get("$ref").asText(), place.text()), path, parts);
    }
    for (JsonNode part : node.path("allOf")) {
      collect(new Place(part, place.text()), path, parts);
    }
    for (String choice : List.of("anyOf", "oneOf")) {
      List<JsonNode> choices = new ArrayList<>();
      node.path(choice).forEach(choices::add);
      boolean hasNull = choices.removeIf(each -> each.path(TYPE).asText().equals(NULL));
      if (choices.size() == 1) {
        isNullable |= collect(new Place(choices.get(0), place.text()), path, parts) | hasNull;
      }
    }
    return isNullable;
  }

  private Place target(String reference, SchemaText from) {
    int hash = reference.indexOf('#');
    String document = hash < 0 ? reference : reference.substring(0, hash);
    String pointer = hash < 0 ? "" : reference.substring(hash + 1);
    SchemaText text = document.isEmpty() ? from : from.references().stream()
        .filter(each -> each.name().equals(document)).map(SchemaText.Reference::schema).findFirst().orElse(null);
    JsonNode node = text == null || !pointer.isEmpty() && !pointer.startsWith("/") ? null : root(text).at(pointer);
    if (node == null || node.isMissingNode()) {
      throw new IllegalArgumentException(
          "the JSON Schema has the reference '%s', which leads neither into it nor to a schema that the registry has "
              .formatted(reference) + "for it: inline that part");
    }
    return new Place(node, text);
  }

  private static Set<String> types(List<Place> parts) {
    Set<String> names = new LinkedHashSet<>();
    for (Place part : parts) {
      JsonNode type = part.node().path(TYPE);
      Set<String> own = new LinkedHashSet<>();
      if (type.isTextual()) {
        own.add(type.asText());
      }
      type.forEach(name -> own.add(name.asText()));
      if (names.isEmpty()) {
        names.addAll(own);
      } else if (!own.isEmpty()) {
        names.retainAll(own);
      }
    }
    if (names.isEmpty() && parts.stream().anyMatch(each -> each.node().path(PROPERTIES).isObject())) {
      names.add(OBJECT);
    }
    if (names.isEmpty() && parts.stream().anyMatch(each -> isTexts(each.node().path("enum")))) {
      names.add(STRING);
    }
    return names;
  }

  private static boolean isTexts(JsonNode values) {
    for (JsonNode value : values) {
      if (!value.isTextual()) {
        return false;
      }
    }
    return !values.isEmpty();
  }

  private DataType object(List<Place> parts, String path) {
    Map<String, Place> properties = new LinkedHashMap<>();
    Set<String> required = new LinkedHashSet<>();
    for (Place part : parts) {
      part.node().path(PROPERTIES).properties()
          .forEach(each -> properties.putIfAbsent(each.getKey(), new Place(each.getValue(), part.text())));
      part.node().path(REQUIRED).forEach(each -> required.add(each.asText()));
    }
    if (properties.isEmpty()) {
      Found values = inner(parts, MORE, path, "{}");
      return DataTypes.createMapType(DataTypes.StringType, values.type(), values.isNullable());
    }
    StructType made = new StructType();
    for (Map.Entry<String, Place> property : properties.entrySet()) {
      Found field = found(property.getValue(), path.isEmpty() ? property.getKey() : path + "." + property.getKey());
      made = made.add(property.getKey(), field.type(), field.isNullable() || !required.contains(property.getKey()));
    }
    return made;
  }

  private DataType array(List<Place> parts, String path) {
    Found elements = inner(parts, ITEMS, path, "[]");
    return DataTypes.createArrayType(elements.type(), elements.isNullable());
  }

  private Found inner(List<Place> parts, String keyword, String path, String step) {
    for (Place part : parts) {
      if (part.node().path(keyword).isObject()) {
        return found(new Place(part.node().get(keyword), part.text()), path + step);
      }
    }
    throw new IllegalArgumentException(
        "the JSON Schema has no type for what is in %s: name one, or give a schema without it".formatted(shown(path)));
  }

  private static DataType text(List<Place> parts) {
    for (Place part : parts) {
      if (part.node().path(FORMAT).asText().equals(TIME)) {
        return DataTypes.TimestampType;
      }
      if (part.node().path(FORMAT).asText().equals(DATE)) {
        return DataTypes.DateType;
      }
      if (part.node().path(ENCODING).asText().equals(BASE64)) {
        return DataTypes.BinaryType;
      }
    }
    return DataTypes.StringType;
  }

  /** Whether all values of one type can be read into another; fields are found by their names. */
  static boolean reads(DataType from, DataType to) {
    if (from instanceof StructType own && to instanceof StructType wanted) {
      return Arrays.stream(wanted.fields()).allMatch(each -> own.getFieldIndex(each.name()).isEmpty()
          ? each.nullable()
          : reads(own.apply(each.name()).dataType(), each.dataType()));
    }
    if (from instanceof ArrayType own && to instanceof ArrayType wanted) {
      return reads(own.elementType(), wanted.elementType());
    }
    if (from instanceof MapType own && to instanceof MapType wanted) {
      return reads(own.valueType(), wanted.valueType());
    }
    return from.equals(to) || from instanceof IntegralType && to instanceof DoubleType;
  }

  /** A declared type with the numbers of a value's own type, wherever any number is declared. */
  static DataType written(DataType declared, DataType own) {
    if (declared instanceof StructType fields && own instanceof StructType given) {
      StructType made = new StructType();
      for (StructField field : fields.fields()) {
        boolean isThere = given.getFieldIndex(field.name()).isDefined();
        DataType type = isThere ? written(field.dataType(), given.apply(field.name()).dataType()) : field.dataType();
        made = made.add(field.name(), type, true);
      }
      return made;
    }
    if (declared instanceof ArrayType array && own instanceof ArrayType given) {
      return DataTypes.createArrayType(written(array.elementType(), given.elementType()), true);
    }
    if (declared instanceof MapType map && own instanceof MapType given) {
      return DataTypes.createMapType(map.keyType(), written(map.valueType(), given.valueType()), true);
    }
    return declared instanceof DoubleType && own instanceof NumericType ? own : declared;
  }

  /** The text of a JSON Schema for values of a type; an object has the title {@code name}. */
  static String schema(DataType type, String name) {
    // It has only what all drafts have in common.
    ObjectNode made = JsonNodeFactory.instance.objectNode();
    if (type instanceof StructType) {
      made.put("title", name);
    }
    made.setAll(node(type));
    return made.toString();
  }

  private static ObjectNode node(DataType type) {
    ObjectNode node = JsonNodeFactory.instance.objectNode();
    if (type instanceof StructType struct) {
      return object(node, struct);
    }
    if (type instanceof ArrayType array) {
      node.put(TYPE, "array").set(ITEMS, node(array.elementType(), array.containsNull()));
      return node;
    }
    if (type instanceof MapType map && map.keyType() instanceof StringType) {
      node.put(TYPE, OBJECT).set(MORE, node(map.valueType(), map.valueContainsNull()));
      return node;
    }
    return scalar(node, type);
  }

  private static ObjectNode scalar(ObjectNode node, DataType type) {
    if (type instanceof BooleanType) {
      return node.put(TYPE, "boolean");
    }
    if (type instanceof NumericType) {
      return node.put(TYPE, type instanceof IntegralType ? "integer" : "number");
    }
    node.put(TYPE, STRING);
    if (type instanceof TimestampType || type instanceof DateType) {
      return node.put(FORMAT, type instanceof DateType ? DATE : TIME);
    }
    if (type instanceof BinaryType) {
      return node.put(ENCODING, BASE64);
    }
    if (type instanceof StringType) {
      return node;
    }
    throw new IllegalArgumentException("JSON has nothing for the type %s: convert it".formatted(type.simpleString()));
  }

  private static ObjectNode node(DataType type, boolean isNullable) {
    ObjectNode node = node(type);
    if (isNullable) {
      node.putArray(TYPE).add(node(type).get(TYPE)).add(NULL);
    }
    return node;
  }

  private static ObjectNode object(ObjectNode node, StructType struct) {
    ObjectNode properties = node.put(TYPE, OBJECT).putObject(PROPERTIES);
    List<String> required = new ArrayList<>();
    for (StructField field : struct.fields()) {
      properties.set(field.name(), node(field.dataType()));
      if (!field.nullable()) {
        required.add(field.name());
      }
    }
    if (!required.isEmpty()) {
      required.forEach(node.putArray(REQUIRED)::add);
    }
    return node.put(MORE, false);
  }
}
