package jmsbridge.predicate;

import com.fasterxml.jackson.databind.JsonNode;
import java.math.BigDecimal;
import java.util.HashSet;
import java.util.Set;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import java.util.stream.StreamSupport;
import jmsbridge.predicate.Value.Sign;
import org.apache.spark.unsafe.types.UTF8String;

/** Predicate or part of one, true, false or unknown; made from the JSON of {@code routes/predicate/rule_json.py}. */
@FunctionalInterface
interface Condition {
  Truth of(Fields fields);

  /** Part of a predicate that has a value. */
  @FunctionalInterface
  interface Operand {
    Value of(Fields fields);
  }

  /** Reads a condition from a JSON list, whose first item is an operator and determines the meaning of the others. */
  static Condition read(JsonNode node) {
    String name = node.get(0).asText();
    switch (name) {
      case "AND", "OR":
        return join(parts(node), name.equals("AND") ? Truth.FALSE : Truth.TRUE);
      case "EACH":
        return each(node.get(1).intValue(), read(node.get(2)));
      case "NOT":
        Condition negated = read(node.get(1));
        return fields -> negated.of(fields).not();
      case "IN":
        Set<UTF8String> texts = new HashSet<>();
        node.get(2).forEach(text -> texts.add(UTF8String.fromString(text.asText())));
        return test(operand(node.get(1)), texts::contains);
      case "LIKE":
        return test(operand(node.get(1)), like(node.get(2).asText(), node.get(3).asText()));
      case "FAULT":
        Body.Format format = Body.Format.of(node.get(1).asText());
        return fields -> Truth.of(fields.body().fault(format) != null);
      case "NULL":
        Operand field = operand(node.get(1));
        return fields -> Truth.of(field.of(fields) == null);
      default:
        Sign sign = Sign.valueOf(name);
        Operand left = operand(node.get(1));
        Operand right = operand(node.get(2));
        return fields -> Value.compare(sign, left.of(fields), right.of(fields));
    }
  }

  private static Condition[] parts(JsonNode node) {
    return StreamSupport.stream(node.spliterator(), false).skip(1).map(Condition::read).toArray(Condition[]::new);
  }

  /** AND or OR of conditions: `strong` if any part is, otherwise unknown if any part is, otherwise the opposite. */
  private static Condition join(Condition[] parts, Truth strong) {
    return fields -> {
      Truth joined = strong.not();
      for (Condition part : parts) {
        Truth truth = part.of(fields);
        if (truth == strong) {
          return strong;
        }
        if (truth == Truth.UNKNOWN) {
          joined = truth;
        }
      }
      return joined;
    };
  }

  /** Whether a condition is true for one element of a path; unknown if there is none. */
  private static Condition each(int path, Condition condition) {
    return fields -> {
      Truth result = null;
      for (Value element : fields.body().values(path)) {
        fields.look(element);
        Truth truth = condition.of(fields);
        if (truth == Truth.TRUE) {
          return truth;
        }
        result = result == Truth.UNKNOWN ? result : truth;
      }
      return result == null ? Truth.UNKNOWN : result;
    };
  }

  private static Condition test(Operand operand, Predicate<UTF8String> accepted) {
    return fields -> {
      Value value = operand.of(fields);
      if (value == null) {
        return Truth.UNKNOWN;
      }
      UTF8String text = value.text();
      return Truth.of(text != null && accepted.test(text));
    };
  }

  /** Test of a LIKE pattern as a regular expression. Every match begins with `prefix`, which is far cheaper to test. */
  private static Predicate<UTF8String> like(String regex, String prefix) {
    UTF8String start = UTF8String.fromString(prefix);
    Pattern pattern = Pattern.compile(regex);
    return text -> text.startsWith(start) && pattern.matcher(text.toString()).matches();
  }

  private static Operand operand(JsonNode node) {
    String name = node.get(0).asText();
    JsonNode first = node.get(1);
    switch (name) {
      case "FIELD":
        int index = first.intValue();
        return fields -> fields.value(index);
      case "BODY":
        int path = first.intValue();
        return fields -> fields.body().value(path);
      case "ELEMENT":
        return Fields::element;
      case "BODY_TEXT":
        return fields -> fields.body().text();
      case "NEGATE":
        Operand negated = operand(first);
        return fields -> Value.negate(negated.of(fields));
      case "ADD", "SUB", "MUL", "DIV":
        Sign sign = Sign.valueOf(name);
        Operand left = operand(first);
        Operand right = operand(node.get(2));
        return fields -> Value.calculate(sign, left.of(fields), right.of(fields));
      default:
        Value value = constant(name, first, node.get(2));
        return fields -> value;
    }
  }

  private static Value constant(String kind, JsonNode value, JsonNode written) {
    switch (kind) {
      case "TEXT":
        return Value.text(UTF8String.fromString(value.asText()));
      case "BOOLEAN":
        return value.booleanValue() ? Value.TRUE : Value.FALSE;
      case "EXACT":
        return Value.exact(value.longValue());
      case "SINGLE":
        return Value.single(value.doubleValue());
      case "DOUBLE":
        return Value.twice(value.doubleValue(), written == null ? null : new BigDecimal(written.asText()));
      default:
        throw new IllegalArgumentException("a predicate has no " + kind);
    }
  }
}
