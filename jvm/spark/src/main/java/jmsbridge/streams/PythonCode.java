package jmsbridge.streams;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;

/** Python functions of a topology, pickled, and the interpreter that runs them. */
final class PythonCode implements Serializable {
  private static final long serialVersionUID = 1L;

  private final List<String> command;
  private final String path;
  private final List<byte[]> functions = new ArrayList<>();

  /** Creates code without functions; {@code path} is the value of PYTHONPATH. */
  PythonCode(List<String> command, String path) {
    this.command = List.copyOf(command);
    this.path = path;
  }

  List<String> command() {
    return command;
  }

  String path() {
    return path;
  }

  List<byte[]> functions() {
    return functions;
  }

  /** Adds a pickled function and returns its number. */
  int add(byte[] pickled) {
    functions.add(pickled);
    return functions.size() - 1;
  }
}
