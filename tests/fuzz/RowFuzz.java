import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Random;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection$;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.CalendarInterval;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.unsafe.types.VariantVal;

/**
 * Feeds RowCheck rows of all types, changed at random, for so many seconds: each is refused, or read with the same result
 * whatever lies around its bytes. Rows that were not changed have to be read as they were written.
 */
public final class RowFuzz {
  private static final StructType TYPE = StructType.fromDDL(
      "a string, b binary, c boolean, d tinyint, e smallint, f int, g bigint, h float, i double, j decimal(10,2),"
          + " k decimal(38,4), l date, m timestamp, n interval year to month, o interval day to second,"
          + " p array<string>, q array<int>, r map<string,array<boolean>>, s struct<x: string, y: array<struct<z: binary>>>,"
          + " t array<smallint>, u array<decimal(30,2)>, v variant, w map<int,bigint>, x void, y array<map<int,string>>")
      .add("z", org.apache.spark.sql.types.DataTypes.CalendarIntervalType);
  private static final int AROUND = 4096;

  private final Random random;
  private final Object check;
  private final Method row;

  private RowFuzz(long seed) throws Exception {
    random = new Random(seed);
    Class<?> type = Class.forName("jmsbridge.streams.RowCheck");
    Constructor<?> made = type.getDeclaredConstructor(StructType.class);
    made.setAccessible(true);
    check = made.newInstance(TYPE);
    row = type.getDeclaredMethod("row", byte[].class, int.class);
    row.setAccessible(true);
  }

  public static void main(String[] arguments) throws Exception {
    long seed = arguments.length > 1 ? Long.parseLong(arguments[1]) : System.nanoTime();
    RowFuzz fuzz = new RowFuzz(seed);
    long deadline = System.nanoTime() + (long) (Double.parseDouble(arguments[0]) * 1e9);
    long inputs = 0;
    long read = 0;
    while (System.nanoTime() < deadline) {
      byte[] good = fuzz.made();
      if (!fuzz.isTaken(good)) {
        throw new AssertionError("a good row was refused, seed " + seed);
      }
      for (int count = 0; count < 50; count++, inputs++) {
        byte[] changed = fuzz.changed(good);
        if (fuzz.isTaken(changed)) {
          read++;
          fuzz.readTwice(changed, seed);
        }
      }
    }
    Runtime runtime = Runtime.getRuntime();
    System.out.println("stat::number_of_executed_units: " + inputs);
    System.out.println("stat::peak_rss_mb: " + (runtime.totalMemory() >> 20));
    System.out.println("read: " + read);
    if (read == 0 || read == inputs) {
      throw new AssertionError("all inputs were treated alike");
    }
  }

  private byte[] made() {
    return ((UnsafeRow) UnsafeProjection$.MODULE$.create(TYPE).apply(row(TYPE))).getBytes();
  }

  private InternalRow row(StructType type) {
    Object[] values = new Object[type.size()];
    for (int at = 0; at < values.length; at++) {
      values[at] = value(type.fields()[at].dataType());
    }
    return new GenericInternalRow(values);
  }

  private Object value(DataType type) {
    if (random.nextInt(6) == 0) {
      return null;
    }
    if (type instanceof StructType struct) {
      return row(struct);
    }
    if (type instanceof ArrayType array) {
      return new GenericArrayData(values(array.elementType(), random.nextInt(70), true));
    }
    if (type instanceof MapType map) {
      int count = random.nextInt(4);
      return new ArrayBasedMapData(new GenericArrayData(values(map.keyType(), count, false)),
          new GenericArrayData(values(map.valueType(), count, true)));
    }
    if (type instanceof DecimalType decimal) {
      return Decimal.apply(random.nextInt(), decimal.precision(), decimal.scale());
    }
    byte[] bytes = new byte[random.nextInt(20)];
    return switch (type.typeName().split(" ")[0].split("\\(")[0]) {
      case "string" -> UTF8String.fromBytes(bytes);
      case "binary" -> bytes;
      case "boolean" -> random.nextBoolean();
      case "byte" -> (byte) random.nextInt();
      case "short" -> (short) random.nextInt();
      case "float" -> random.nextFloat();
      case "double" -> random.nextDouble();
      case "long", "timestamp" -> random.nextLong();
      case "variant" -> new VariantVal(bytes, new byte[] {1, 0, 0});
      case "void" -> null;
      case "interval" -> type.typeName().equals("interval") ? new CalendarInterval(1, 2, 3)
          : type.typeName().contains("day") ? (Object) random.nextLong() : random.nextInt();
      default -> random.nextInt();
    };
  }

  private Object[] values(DataType type, int count, boolean hasNulls) {
    Object[] values = new Object[count];
    for (int at = 0; at < count; at++) {
      do {
        values[at] = value(type);
      } while (values[at] == null && !hasNulls);
    }
    return values;
  }

  /** Some bytes, words or the length changed. */
  private byte[] changed(byte[] good) {
    byte[] bytes = good.clone();
    for (int left = 1 + random.nextInt(3); left > 0; left--) {
      int at = random.nextInt(bytes.length);
      switch (random.nextInt(5)) {
        case 0 -> bytes[at] = (byte) random.nextInt();
        case 1 -> bytes[at] ^= (byte) (1 << random.nextInt(8));
        case 2 -> Platform.putLong(bytes, Platform.BYTE_ARRAY_OFFSET + at / 8 * 8L, (long) random.nextInt(2 * bytes.length) << 32 | random.nextInt(64));
        case 3 -> Platform.putInt(bytes, Platform.BYTE_ARRAY_OFFSET + at / 8 * 8L, random.nextInt());
        default -> bytes = Arrays.copyOf(bytes, Math.max(8, random.nextInt(bytes.length + 16) / 8 * 8));
      }
    }
    return bytes;
  }

  private boolean isTaken(byte[] bytes) throws Exception {
    try {
      row.invoke(check, bytes, 0);
      return true;
    } catch (InvocationTargetException refused) {
      if (refused.getCause().getClass().getSimpleName().equals("UnfitValueException")) {
        return false;
      }
      throw refused;
    }
  }

  private void readTwice(byte[] bytes, long seed) {
    String one = text(bytes, (byte) 0x55);
    String other = text(bytes, (byte) 0xAA);
    if (!one.equals(other)) {
      throw new AssertionError("bytes outside of a row were read, seed " + seed + ": " + Arrays.toString(bytes));
    }
  }

  private static String text(byte[] bytes, byte around) {
    byte[] all = new byte[bytes.length + 2 * AROUND];
    Arrays.fill(all, around);
    System.arraycopy(bytes, 0, all, AROUND, bytes.length);
    UnsafeRow row = new UnsafeRow(TYPE.size());
    row.pointTo(all, Platform.BYTE_ARRAY_OFFSET + AROUND, bytes.length);
    StringBuilder text = new StringBuilder();
    read(row, TYPE, text);
    return text.toString();
  }

  private static void read(InternalRow row, StructType type, StringBuilder text) {
    for (int at = 0; at < type.size(); at++) {
      read(row, at, type.fields()[at].dataType(), text);
    }
  }

  /** Reads a value through the getters that generated code uses. */
  private static void read(SpecializedGetters of, int at, DataType type, StringBuilder text) {
    if (of.isNullAt(at)) {
      text.append("null,");
      return;
    }
    Object value = of.get(at, type);
    if (value instanceof InternalRow row) {
      read(row, (StructType) type, text.append('{'));
    } else if (type instanceof ArrayType array) {
      var elements = of.getArray(at);
      for (int each = 0; each < elements.numElements(); each++) {
        read(elements, each, array.elementType(), text.append('['));
      }
    } else if (type instanceof MapType map) {
      MapData entries = of.getMap(at);
      for (int each = 0; each < entries.numElements(); each++) {
        read(entries.keyArray(), each, map.keyType(), text.append('<'));
        read(entries.valueArray(), each, map.valueType(), text.append('>'));
      }
    } else if (value instanceof byte[] bytes) {
      text.append(Arrays.toString(bytes));
    } else if (value instanceof UTF8String string) {
      text.append(Arrays.toString(string.getBytes()));
    } else if (value instanceof VariantVal variant) {
      text.append(Arrays.toString(variant.getValue())).append(Arrays.toString(variant.getMetadata()));
    } else {
      text.append(value);
    }
    text.append(',');
  }
}
