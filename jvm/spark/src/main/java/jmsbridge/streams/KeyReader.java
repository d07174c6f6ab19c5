package jmsbridge.streams;

import java.io.Serializable;
import java.util.stream.Stream;
import jmsbridge.serdes.UnfitValueException;
import jmsbridge.serdes.ValueReader;
import org.apache.spark.sql.catalyst.InternalRow;

/** Reader of a topic's keys: gives the bytes by which the program knows each key. */
public final class KeyReader implements Serializable {
  private static final long serialVersionUID = 1L;

  private final KeyKind kind;
  private final ValueReader reader;
  private final Projection column;

  /** Creates a reader of keys of a kind; {@code column} computes the key from the fields that {@code reader} reads. */
  KeyReader(KeyKind kind, ValueReader reader, Projection column) {
    this.kind = kind;
    this.reader = reader;
    this.column = column;
  }

  /** Reader of keys that are taken as they are. */
  static KeyReader of(KeyKind kind) {
    return new KeyReader(kind, null, null);
  }

  KeyKind kind() {
    return kind;
  }

  /** Begins to fetch what is needed to read these keys, of which some may be null. */
  void expect(Stream<byte[]> keysToRead) {
    if (reader != null) {
      reader.expect(keysToRead);
    }
  }

  /** The bytes of a key, which may be null; UnfitValueException if it cannot be read. */
  byte[] read(byte[] key) {
    if (key == null) {
      return null;
    }
    if (reader == null) {
      kind.check(key);
      return key;
    }
    InternalRow fields;
    try {
      fields = reader.read(key);
      return kind.write(column.apply(fields));
    } catch (UnfitValueException | EvaluationException failure) {
      throw new UnfitValueException("the key cannot be read: " + failure.getMessage());
    }
  }
}
