package jmsbridge.predicate;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.charset.StandardCharsets;
import java.util.regex.Pattern;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Column function that checks the key of a record: it is a number, or text that a pattern matches as a whole.
 *
 * <p>Settings, as JSON: {@code pattern}, a regular expression; {@code letters} and {@code others}, ASCII characters of
 * which the pattern is known to match any text with at least one of the letters. Such a text, as most keys are, is not
 * matched against the expression.
 */
public final class KeyCheck implements ScalarFunction<Boolean> {
  private static final long serialVersionUID = 1L;
  private static final UTF8String STRING = UTF8String.fromString("string");
  private static final byte OTHER = 1;
  private static final byte LETTER = 2;

  private final String settings;
  private transient Text text;

  /** Texts that are valid keys; `kinds` has for each ASCII character LETTER, OTHER, or 0 for a character of neither. */
  private record Text(Pattern pattern, byte[] kinds) {
    boolean accepts(byte[] key) {
      return isPlain(key) || pattern.matcher(new String(key, StandardCharsets.UTF_8)).matches();
    }

    private boolean isPlain(byte[] key) {
      byte classes = 0;
      for (byte character : key) {
        byte kind = character < 0 ? 0 : kinds[character];
        if (kind == 0) {
          return false;
        }
        classes |= kind;
      }
      return (classes & LETTER) != 0;
    }
  }

  /** Function with these settings; IllegalArgumentException if they are not JSON. */
  public KeyCheck(String settings) {
    this.settings = settings;
    text = read(settings);
  }

  /**
   * Whether the key is valid.
   *
   * @param type declared type of the property that the key was taken from, as {@link DeclaredType} gives it
   * @param key the key's bytes; null: no key, which is not valid
   */
  public boolean invoke(UTF8String type, byte[] key) {
    if (key == null || type == null) {
      return false;
    }
    if (type.numBytes() == 0 || type.equals(STRING)) {
      return text.accepts(key);
    }
    Declared declared = Declared.BY_NAME.get(type.toString());
    return declared != null && declared.isNumber() && isLine(key);
  }

  /** Whether there are characters, and none of them ends a line. */
  private static boolean isLine(byte[] key) {
    for (byte character : key) {
      if (character == '\n') {
        return false;
      }
    }
    return key.length > 0;
  }

  private static Text read(String settings) {
    byte[] kinds = new byte[128];
    try {
      JsonNode node = new ObjectMapper().readTree(settings);
      // Flags for Python's meaning: \w and the like match letters and digits of any script; only \n ends a line.
      int flags = Pattern.UNICODE_CHARACTER_CLASS | Pattern.UNIX_LINES;
      node.get("others").asText().chars().forEach(character -> kinds[character] = OTHER);
      node.get("letters").asText().chars().forEach(character -> kinds[character] = LETTER);
      return new Text(Pattern.compile(node.get("pattern").asText(), flags), kinds);
    } catch (JsonProcessingException error) {
      throw new IllegalArgumentException(error);
    }
  }

  private Object readResolve() {
    return new KeyCheck(settings);
  }

  @Override
  public DataType[] inputTypes() {
    return new DataType[] {DataTypes.StringType, DataTypes.BinaryType};
  }

  @Override
  public DataType resultType() {
    return DataTypes.BooleanType;
  }

  @Override
  public String name() {
    return "key-check";
  }

  @Override
  public String canonicalName() {
    return "jmsbridge.key-check:" + settings;
  }

  @Override
  public String toString() {
    return name();
  }
}
