package jmsbridge.serdes;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import jmsbridge.Limits;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.Decoder;
import org.apache.avro.util.Utf8;

/**
 * Decoder of Avro that takes no length in a value for more than the bytes behind it.
 *
 * <p>The library allocates what a length announces before it reads, and a block of items that have no bytes, such as
 * nulls, can announce any number of them.
 */
final class BoundedDecoder extends Decoder {
  private final BinaryDecoder in;
  private final long mostItems;
  private long items;

  /** Creates the decoder of a value of this size. */
  BoundedDecoder(BinaryDecoder in, int bytes) {
    this.in = in;
    mostItems = (long) bytes + Limits.MOST_EMPTY_ITEMS;
  }

  private long counted(long more) throws IOException {
    if (more < 0 || more > mostItems - items) {
      throw new IOException("an array or a map announces more items than the value has bytes");
    }
    items += more;
    return more;
  }

  private int length() throws IOException {
    long length = in.readLong();
    if (length < 0 || length > in.inputStream().available()) {
      throw new IOException("a text or bytes announce %d bytes, and %d are there".formatted(length,
          in.inputStream().available()));
    }
    return (int) length;
  }

  @Override
  public void readNull() throws IOException {
    in.readNull();
  }

  @Override
  public boolean readBoolean() throws IOException {
    return in.readBoolean();
  }

  @Override
  public int readInt() throws IOException {
    return in.readInt();
  }

  @Override
  public long readLong() throws IOException {
    return in.readLong();
  }

  @Override
  public float readFloat() throws IOException {
    return in.readFloat();
  }

  @Override
  public double readDouble() throws IOException {
    return in.readDouble();
  }

  @Override
  public Utf8 readString(Utf8 old) throws IOException {
    byte[] bytes = new byte[length()];
    in.readFixed(bytes);
    return new Utf8(bytes);
  }

  @Override
  public String readString() throws IOException {
    return readString(null).toString();
  }

  @Override
  public void skipString() throws IOException {
    in.skipFixed(length());
  }

  @Override
  public ByteBuffer readBytes(ByteBuffer old) throws IOException {
    byte[] bytes = new byte[length()];
    in.readFixed(bytes);
    return ByteBuffer.wrap(bytes);
  }

  @Override
  public void skipBytes() throws IOException {
    in.skipFixed(length());
  }

  /** Reads so many bytes, which the schema says; EOFException before anything is made of them if there are fewer. */
  byte[] readFixed(int length) throws IOException {
    if (length > in.inputStream().available()) {
      throw new EOFException();
    }
    byte[] bytes = new byte[length];
    in.readFixed(bytes);
    return bytes;
  }

  @Override
  public void readFixed(byte[] bytes, int start, int length) throws IOException {
    in.readFixed(bytes, start, length);
  }

  @Override
  public void skipFixed(int length) throws IOException {
    in.skipFixed(length);
  }

  @Override
  public int readEnum() throws IOException {
    return in.readEnum();
  }

  @Override
  public long readArrayStart() throws IOException {
    return counted(in.readArrayStart());
  }

  @Override
  public long arrayNext() throws IOException {
    return counted(in.arrayNext());
  }

  @Override
  public long skipArray() throws IOException {
    return counted(in.skipArray());
  }

  @Override
  public long readMapStart() throws IOException {
    return counted(in.readMapStart());
  }

  @Override
  public long mapNext() throws IOException {
    return counted(in.mapNext());
  }

  @Override
  public long skipMap() throws IOException {
    return counted(in.skipMap());
  }

  @Override
  public int readIndex() throws IOException {
    return in.readIndex();
  }
}
