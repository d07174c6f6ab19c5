package jmsbridge.streams;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Python process of one task. It is started at the first request and ends with its input.
 *
 * <p>Requests and answers are messages: the number of their parts, then each part behind its length; numbers are ints,
 * most significant byte first. The first message has the pickled functions; the first part of a request is the number of
 * a function. The other side is `engine/streams/python_worker.py`.
 */
final class PythonWorker implements AutoCloseable {
  private static final int CLOSE_SECONDS = 5;
  private static final int MOST_PART_BYTES = 1 << 30;

  private final PythonCode code;
  private Process process;
  private DataOutputStream out;
  private DataInputStream in;

  PythonWorker(PythonCode code) {
    this.code = code;
  }

  /** Has a function process a request and returns the answer; IllegalStateException if the process ends. */
  List<byte[]> ask(int function, List<byte[]> parts) {
    try {
      if (process == null) {
        start();
      }
      out.writeInt(parts.size() + 1);
      out.writeInt(Integer.BYTES);
      out.writeInt(function);
      for (byte[] part : parts) {
        write(part);
      }
      out.flush();
      byte[][] answer = new byte[in.readInt()][];
      for (int at = 0; at < answer.length; at++) {
        int length = in.readInt();
        if (length < 0 || length > MOST_PART_BYTES) {
          throw new IOException("it has sent what is no answer");
        }
        answer[at] = in.readNBytes(length);
        if (answer[at].length < length) {
          throw new EOFException();
        }
      }
      return List.of(answer);
    } catch (IOException failure) {
      throw new IllegalStateException("the Python process %s; its last words are in this log"
          .formatted(ended(failure)), failure);
    }
  }

  private void start() throws IOException {
    ProcessBuilder builder = new ProcessBuilder(code.command()).redirectError(ProcessBuilder.Redirect.INHERIT);
    builder.environment().put("PYTHONPATH", code.path());
    process = builder.start();
    out = new DataOutputStream(new BufferedOutputStream(process.getOutputStream(), 1 << 16));
    in = new DataInputStream(new BufferedInputStream(process.getInputStream(), 1 << 16));
    out.writeInt(code.functions().size());
    for (byte[] each : code.functions()) {
      write(each);
    }
  }

  private void write(byte[] part) throws IOException {
    out.writeInt(part.length);
    out.write(part);
  }

  private String ended(IOException failure) {
    if (process == null) {
      return "does not start (%s)".formatted(failure.getMessage());
    }
    try {
      boolean hasEnded = process.waitFor(1, TimeUnit.SECONDS);
      return hasEnded ? "has ended with %d".formatted(process.exitValue()) : "does not answer";
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      return "does not answer";
    } finally {
      close();
    }
  }

  /** Ends the process; a later request starts another one. */
  @Override
  public void close() {
    if (process == null) {
      return;
    }
    Process ending = process;
    process = null;
    try {
      ending.getOutputStream().close();
      if (!ending.waitFor(CLOSE_SECONDS, TimeUnit.SECONDS)) {
        ending.destroyForcibly();
      }
    } catch (IOException broken) {
      // The process has closed its input, as one that ends does.
      ending.destroyForcibly();
    } catch (InterruptedException interrupted) {
      ending.destroyForcibly();
      Thread.currentThread().interrupt();
    }
  }
}
