package jmsbridge.serdes;

import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.Set;
import org.apache.avro.LogicalTypes;
import org.apache.avro.Resolver;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericFixed;
import org.apache.avro.generic.IndexedRecord;

/**
 * Checks of Avro's decimals, which are digits in bytes: the library reads those of one scale as those of another, and
 * Spark takes the last digits of a value that has too many.
 */
final class AvroDecimals {
  private AvroDecimals() {}

  /** Throws IllegalArgumentException if a decimal of the writer would be read with another scale. */
  static void checkScales(Schema writer, Schema reader) {
    checkScales(Resolver.resolve(writer, reader), Collections.newSetFromMap(new IdentityHashMap<>()));
  }

  private static void checkScales(Resolver.Action action, Set<Resolver.Action> seen) {
    if (action == null || !seen.add(action)) {
      return;
    }
    if (action.writer.getLogicalType() instanceof LogicalTypes.Decimal written
        && action.reader != null && action.reader.getLogicalType() instanceof LogicalTypes.Decimal read
        && written.getScale() != read.getScale()) {
      throw new IllegalArgumentException("its decimal(%d,%d) cannot be read as decimal(%d,%d)".formatted(
          written.getPrecision(), written.getScale(), read.getPrecision(), read.getScale()));
    }
    if (action instanceof Resolver.RecordAdjust fields) {
      for (Resolver.Action part : fields.fieldActions) {
        checkScales(part, seen);
      }
    } else if (action instanceof Resolver.Container elements) {
      checkScales(elements.elementAction, seen);
    } else if (action instanceof Resolver.WriterUnion branches) {
      for (Resolver.Action part : branches.actions) {
        checkScales(part, seen);
      }
    } else if (action instanceof Resolver.ReaderUnion branch) {
      checkScales(branch.actualAction, seen);
    }
  }

  /** Whether values of a schema, which does not contain itself, have decimals. */
  static boolean areIn(Schema schema) {
    return switch (schema.getType()) {
      case RECORD -> schema.getFields().stream().anyMatch(each -> areIn(each.schema()));
      case UNION -> schema.getTypes().stream().anyMatch(AvroDecimals::areIn);
      case ARRAY -> areIn(schema.getElementType());
      case MAP -> areIn(schema.getValueType());
      default -> schema.getLogicalType() instanceof LogicalTypes.Decimal;
    };
  }

  /** Throws UnfitValueException, which names the field, if a decimal of a value has more digits than its type. */
  static void checkDigits(Schema schema, Object value, String name) {
    switch (schema.getType()) {
      case RECORD -> {
        for (Schema.Field member : schema.getFields()) {
          String field = name.isEmpty() ? member.name() : name + "." + member.name();
          checkDigits(member.schema(), ((IndexedRecord) value).get(member.pos()), field);
        }
      }
      case UNION ->
          checkDigits(schema.getTypes().get(GenericData.get().resolveUnion(schema, value)), value, name);
      case ARRAY -> ((Collection<?>) value).forEach(each -> checkDigits(schema.getElementType(), each, name));
      case MAP -> ((Map<?, ?>) value).values().forEach(each -> checkDigits(schema.getValueType(), each, name));
      default -> {
        if (schema.getLogicalType() instanceof LogicalTypes.Decimal decimal
            && digits(value).abs().compareTo(BigInteger.TEN.pow(decimal.getPrecision())) >= 0) {
          throw new UnfitValueException("the field %s is a decimal(%d,%d), and the value has more digits".formatted(
              name.isEmpty() ? "value" : name, decimal.getPrecision(), decimal.getScale()));
        }
      }
    }
  }

  private static BigInteger digits(Object value) {
    if (value instanceof GenericFixed fixed) {
      return new BigInteger(fixed.bytes());
    }
    ByteBuffer bytes = ((ByteBuffer) value).duplicate();
    byte[] copy = new byte[bytes.remaining()];
    bytes.get(copy);
    return copy.length == 0 ? BigInteger.ZERO : new BigInteger(copy);
  }
}
