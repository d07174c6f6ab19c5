package jmsbridge.predicate;

import java.io.Serializable;

/**
 * Sizes beyond which a body is not read: its bytes, the objects and arrays around a value, and the values that a path
 * with {@code [*]} names. {@code routes/predicate/bodies.py} has the same in Python.
 */
public record Bounds(int size, int depth, int elements) implements Serializable {
  private static final long serialVersionUID = 1L;
  /** Those of this process, which functions over bodies take with them when they are made. */
  private static volatile Bounds used = new Bounds(1 << 20, 100, 10_000);

  /** Sets those of this process. */
  public static void use(Bounds bounds) {
    used = bounds;
  }

  /** Those of this process. */
  static Bounds used() {
    return used;
  }
}
