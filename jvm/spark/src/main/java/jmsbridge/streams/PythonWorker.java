package jmsbridge.streams;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.TimeUnit;
import jmsbridge.Limits;

/**
 * Python process of one task. It is started at the first request and ends with its input.
 *
 * <p>Requests and answers are messages: the number of their parts, then each part behind its length; numbers are ints,
 * most significant byte first. The first message has the pickled functions, and is answered when they are loaded; the first
 * part of a request is the number of a function. The other side is `engine/topologies/library/python_worker.py`.
 */
final class PythonWorker implements AutoCloseable {
  private static final int CLOSE_SECONDS = 5;

  private final PythonCode code;
  private volatile Process process;
  private volatile boolean isOver;
  private DataOutputStream out;
  private DataInputStream in;

  PythonWorker(PythonCode code) {
    this.code = code;
  }

  /**
   * Has a function process a request and returns the answer.
   *
   * @throws PythonEndedException if the process ends before it has answered
   * @throws IllegalStateException if the process does not start, or ends at another time
   */
  PythonAnswer ask(int function, List<byte[]> parts) {
    if (isOver) {
      throw new IllegalStateException("the run has ended");
    }
    try {
      if (process == null) {
        start();
      }
    } catch (IOException failure) {
      throw broken(failure);
    }
    try {
      return new PythonAnswer(exchanged(function, parts), () -> next(function));
    } catch (IOException failure) {
      String how = ended(failure);
      if (isOver) {
        throw new IllegalStateException("the run has ended", failure);
      }
      // What is known of the end is in the message; that a pipe is closed says no more.
      throw new PythonEndedException("the Python process %s while it processed the record".formatted(how));
    }
  }

  /** The next piece of the latest answer of a function. */
  private byte[] next(int function) {
    try {
      return exchanged(function, List.of()).get(0);
    } catch (IOException failure) {
      throw broken(failure);
    }
  }

  private IllegalStateException broken(IOException failure) {
    return new IllegalStateException("the Python process %s; its last words are in this log".formatted(ended(failure)),
        failure);
  }

  private List<byte[]> exchanged(int function, List<byte[]> parts) throws IOException {
    out.writeInt(parts.size() + 1);
    out.writeInt(Integer.BYTES);
    out.writeInt(function);
    for (byte[] part : parts) {
      write(part);
    }
    out.flush();
    byte[][] answer = new byte[in.readInt()][];
    for (int index = 0; index < answer.length; index++) {
      int length = in.readInt();
      if (length < 0 || length > Limits.MOST_ANSWER_BYTES) {
        throw new IOException("it has sent bytes that are not an answer");
      }
      answer[index] = in.readNBytes(length);
      if (answer[index].length < length) {
        throw new EOFException();
      }
    }
    return List.of(answer);
  }

  private void start() throws IOException {
    ProcessBuilder builder = new ProcessBuilder(code.command()).redirectError(ProcessBuilder.Redirect.INHERIT);
    builder.environment().put("PYTHONPATH", code.path());
    process = builder.start();
    out = new DataOutputStream(new BufferedOutputStream(process.getOutputStream(), 1 << 16));
    in = new DataInputStream(new BufferedInputStream(process.getInputStream(), 1 << 16));
    out.writeInt(code.functions().size());
    for (byte[] function : code.functions()) {
      write(function);
    }
    out.flush();
    in.readInt();
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

  /** Ends the process at once, from any thread: its run is over, and a later request fails. */
  void kill() {
    isOver = true;
    Process ending = process;
    if (ending != null) {
      ending.destroyForcibly();
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
