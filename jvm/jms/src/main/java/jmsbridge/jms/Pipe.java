package jmsbridge.jms;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.util.List;

/**
 * Frames to and from the worker: a length (u32), one letter for the kind, and the content; docs/adr/0023-jms.md.
 *
 * <p>Thread-safe for writers; one thread reads.
 */
public final class Pipe {
  /** Kinds of frames from the worker. */
  public static final char SETTINGS = 'C', DONE = 'D', SEND = 'S', CLOSE = 'X';

  /** Kinds of frames to the worker. */
  public static final char READY = 'R', MESSAGES = 'M', OUTCOMES = 'O', FAILED = 'F', ALIVE = 'P', END = 'E';

  /** A frame from the worker. */
  public record Frame(char kind, ByteBuffer content) {}

  private final DataInputStream in;
  private final OutputStream out;

  Pipe(InputStream in, OutputStream out) {
    this.in = new DataInputStream(new BufferedInputStream(in, 1 << 16));
    this.out = out;
  }

  /** The next frame; null when the worker has closed the pipe. */
  public Frame read() throws IOException {
    try {
      byte[] content = new byte[in.readInt()];
      char kind = (char) in.readByte();
      in.readFully(content);
      return new Frame(kind, ByteBuffer.wrap(content));
    } catch (EOFException end) {
      return null;
    }
  }

  /** Writes a frame. */
  public void write(char kind, Buffer content) throws IOException {
    Buffer head = new Buffer();
    head.u32(content.size());
    head.u8(kind);
    synchronized (this) {
      head.writeTo(out);
      content.writeTo(out);
      out.flush();
    }
  }

  /** Writes a frame of texts. */
  public void write(char kind, List<String> texts) throws IOException {
    Buffer content = new Buffer();
    Texts.write(content, texts);
    write(kind, content);
  }
}
