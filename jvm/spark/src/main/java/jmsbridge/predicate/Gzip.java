package jmsbridge.predicate;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.zip.CRC32;
import java.util.zip.DataFormatException;
import java.util.zip.Deflater;
import java.util.zip.Inflater;

/** Compression of bodies as RFC 1952 has it; {@code routes/body_steps.py} is the same in Python. */
final class Gzip {
  private static final String TRUNCATED = "it is truncated";
  private static final String DAMAGED = "it is damaged";

  /** A header without a time and a name; 255 stands for an unknown system. */
  private static final byte[] PLAIN = {0x1f, (byte) 0x8b, 8, 0, 0, 0, 0, 0, 0, (byte) 0xff};
  private static final int MAGIC = 3;
  private static final int TRAILER = 8;
  private static final int CHECKED = 2;
  private static final int EXTRA = 4;
  private static final int NAME = 8;
  private static final int COMMENT = 16;
  private static final int RESERVED = 0xe0;

  private final byte[] body;
  private final ByteArrayOutputStream all = new ByteArrayOutputStream();
  private final byte[] buffer = new byte[8192];
  private int position;

  private Gzip(byte[] body) {
    this.body = body;
  }

  /** The compressed body. */
  static byte[] compressed(byte[] body) {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    all.writeBytes(PLAIN);
    Deflater deflater = new Deflater(Deflater.DEFAULT_COMPRESSION, true);
    try {
      deflater.setInput(body);
      deflater.finish();
      byte[] buffer = new byte[8192];
      while (!deflater.finished()) {
        all.write(buffer, 0, deflater.deflate(buffer));
      }
    } finally {
      deflater.end();
    }
    all.writeBytes(trailer(crc(body, 0, body.length), body.length));
    return all.toByteArray();
  }

  /** The content of all members of a body, which ends with the last one. */
  static byte[] decompressed(byte[] body) throws UnconvertibleBodyException {
    return new Gzip(body).content();
  }

  private byte[] content() throws UnconvertibleBodyException {
    Inflater inflater = new Inflater(true);
    try {
      do {
        skipHeader();
        inflater.reset();
        inflater.setInput(body, position, body.length - position);
        byte[] trailer = inflate(inflater);
        position = body.length - inflater.getRemaining();
        check(body.length - position >= TRAILER, TRUNCATED);
        check(Arrays.equals(body, position, position + TRAILER, trailer, 0, TRAILER), DAMAGED);
        position += TRAILER;
      } while (position < body.length);
    } finally {
      inflater.end();
    }
    return all.toByteArray();
  }

  private void skipHeader() throws UnconvertibleBodyException {
    int start = position;
    String fault = "no gzip begins at " + start;
    int known = Math.min(MAGIC, body.length - start);
    check(Arrays.equals(body, start, start + known, PLAIN, 0, known), fault);
    check(body.length - start >= PLAIN.length, TRUNCATED);
    int flags = body[start + MAGIC];
    check((flags & RESERVED) == 0, fault);
    position += PLAIN.length;
    if ((flags & EXTRA) != 0) {
      check(body.length - position >= 2, TRUNCATED);
      position += 2 + twoBytes(position);
    }
    for (int texts = Integer.bitCount(flags & (NAME | COMMENT)); texts > 0; texts--) {
      while (position < body.length && body[position] != 0) {
        position++;
      }
      position++;
      check(position <= body.length, TRUNCATED);
    }
    int end = position;
    position += (flags & CHECKED) == 0 ? 0 : 2;
    check(position <= body.length, TRUNCATED);
    check(position == end || (crc(body, start, end - start) & 0xffff) == twoBytes(end), DAMAGED);
  }

  /** Adds the content of one member, and returns the trailer that belongs to it. */
  private byte[] inflate(Inflater inflater) throws UnconvertibleBodyException {
    CRC32 crc = new CRC32();
    while (!inflater.finished()) {
      int size;
      try {
        int room = UnconvertibleBodyException.LARGEST + 1 - all.size();
        size = inflater.inflate(buffer, 0, Math.min(buffer.length, room));
      } catch (DataFormatException wrong) {
        throw new UnconvertibleBodyException(DAMAGED);
      }
      check(size > 0 || inflater.finished(), TRUNCATED);
      crc.update(buffer, 0, size);
      all.write(buffer, 0, size);
      if (all.size() > UnconvertibleBodyException.LARGEST) {
        throw UnconvertibleBodyException.tooLarge();
      }
    }
    return trailer((int) crc.getValue(), (int) inflater.getBytesWritten());
  }

  private int twoBytes(int place) {
    return body[place] & 0xff | (body[place + 1] & 0xff) << 8;
  }

  private static int crc(byte[] bytes, int start, int size) {
    CRC32 crc = new CRC32();
    crc.update(bytes, start, size);
    return (int) crc.getValue();
  }

  private static byte[] trailer(int crc, int size) {
    return ByteBuffer.allocate(TRAILER).order(ByteOrder.LITTLE_ENDIAN).putInt(crc).putInt(size).array();
  }

  private static void check(boolean holds, String otherwise) throws UnconvertibleBodyException {
    if (!holds) {
      throw new UnconvertibleBodyException(otherwise);
    }
  }
}
