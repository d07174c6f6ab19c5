package jmsbridge.jms;

import java.io.IOException;
import java.io.OutputStream;
import java.util.Arrays;

/** Growing bytes of a frame, in network order. */
public final class Buffer {
  private byte[] data = new byte[1024];
  private int size;

  /** Number of bytes. */
  public int size() {
    return size;
  }

  /** Forgets all bytes. */
  public void clear() {
    size = 0;
    if (data.length > (1 << 20)) {
      data = new byte[1024];
    }
  }

  /** A copy of the bytes. */
  public byte[] toBytes() {
    return Arrays.copyOf(data, size);
  }

  /** Appends a byte. */
  public void u8(int value) {
    room(1);
    data[size++] = (byte) value;
  }

  /** Appends four bytes. */
  public void u32(int value) {
    room(4);
    data[size++] = (byte) (value >>> 24);
    data[size++] = (byte) (value >>> 16);
    data[size++] = (byte) (value >>> 8);
    data[size++] = (byte) value;
  }

  /** Appends eight bytes. */
  public void u64(long value) {
    u32((int) (value >>> 32));
    u32((int) value);
  }

  /** Appends bytes. */
  public void bytes(byte[] value) {
    room(value.length);
    System.arraycopy(value, 0, data, size, value.length);
    size += value.length;
  }

  /** Appends bytes with their length before them. */
  public void sized(byte[] value) {
    u32(value.length);
    bytes(value);
  }

  /** Appends the bytes of another. */
  public void append(Buffer other) {
    room(other.size);
    System.arraycopy(other.data, 0, data, size, other.size);
    size += other.size;
  }

  void writeTo(OutputStream out) throws IOException {
    out.write(data, 0, size);
  }

  private void room(int more) {
    if (data.length - size < more) {
      data = Arrays.copyOf(data, Math.max(Math.addExact(size, more), data.length + (data.length >> 1)));
    }
  }
}
