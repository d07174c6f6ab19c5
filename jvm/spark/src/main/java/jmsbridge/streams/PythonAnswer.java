package jmsbridge.streams;

import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** Answer of a Python function: outputs and states in pieces, of which no more than one is taken at once. */
final class PythonAnswer {
  /** Records that the function could not process. */
  private static final StructType FAILURES =
      new StructType().add("row", DataTypes.IntegerType).add("error", DataTypes.StringType);
  private static final int PARTS_BEFORE_PIECES = 3;

  /** What to do for a failure of the record in a row. */
  interface OnFailure {
    void take(int row, String error);
  }

  private final int outputs;
  private final int states;
  private final byte[] failures;
  private final byte[] timers;
  private final Deque<byte[]> pieces;
  private final Supplier<byte[]> more;

  /** Creates an answer of the parts of a message; {@code more} asks for a further piece. */
  PythonAnswer(List<byte[]> parts, Supplier<byte[]> more) {
    ByteBuffer counts = ByteBuffer.wrap(parts.get(0));
    outputs = counts.getInt();
    states = counts.getInt();
    failures = parts.get(1);
    timers = parts.get(2);
    pieces = new ArrayDeque<>(parts.subList(PARTS_BEFORE_PIECES, parts.size()));
    this.more = more;
  }

  /** Takes the outputs, in their order; before the states. */
  void outputs(StructType type, Consumer<UnsafeRow> taker) {
    take(outputs, type, taker);
  }

  void failures(OnFailure taker) {
    ArrowRows.read(failures, FAILURES).forEach(each -> taker.take(each.getInt(0), each.getUTF8String(1).toString()));
  }

  /** Takes the changed states; after the outputs. */
  void states(StructType type, Consumer<UnsafeRow> taker) {
    take(states, type, taker);
  }

  byte[] timers() {
    return timers;
  }

  private void take(int count, StructType type, Consumer<UnsafeRow> taker) {
    for (int index = 0; index < count; index++) {
      byte[] piece = pieces.isEmpty() ? more.get() : pieces.poll();
      ArrowRows.read(piece, type).forEach(taker);
    }
  }
}
