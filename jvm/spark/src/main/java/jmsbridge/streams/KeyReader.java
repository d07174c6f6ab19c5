package jmsbridge.streams;

import java.io.Serializable;
import jmsbridge.serdes.UnfitValueException;
import jmsbridge.serdes.ValueReader;
import org.apache.spark.sql.catalyst.InternalRow;

/** Reader of a topic's keys that have fields or a schema: gives the bytes by which the program knows each key. */
final class KeyReader implements Serializable {
  private static final long serialVersionUID = 1L;

  private final ValueReader reader;
  private final Projection column;
  private final KeyKind kind;

  /** Creates a reader of keys of a kind; {@code column} computes the key from the fields that {@code reader} reads. */
  KeyReader(ValueReader reader, Projection column, KeyKind kind) {
    this.reader = reader;
    this.column = column;
    this.kind = kind;
  }

  KeyKind kind() {
    return kind;
  }

  /** The bytes of a key, which may be null; UnfitValueException if it cannot be read. */
  byte[] read(byte[] key) {
    if (key == null) {
      return null;
    }
    InternalRow fields;
    try {
      fields = reader.read(key);
    } catch (UnfitValueException unfit) {
      throw new UnfitValueException("the key cannot be read: " + unfit.getMessage());
    }
    return kind.write(column.apply(fields));
  }
}
