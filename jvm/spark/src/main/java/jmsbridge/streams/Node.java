package jmsbridge.streams;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;

/** Step of a topology's program. Each task works with a copy of its own. */
abstract class Node implements Serializable {
  private static final long serialVersionUID = 1L;

  final String name;
  /** Fields of the records that the node forwards. */
  final StructType type;
  private final List<Node> consumers = new ArrayList<>();
  private final List<Integer> ports = new ArrayList<>();
  protected transient TaskContext task;

  Node(String name, StructType type) {
    this.name = name;
    this.type = type;
  }

  /** Makes the consumer get the node's records at a port; a node with several inputs has a port for each. */
  final void link(Node consumer, int port) {
    consumers.add(consumer);
    ports.add(port);
  }

  /** Begins work in a task, before the first record. */
  void open(TaskContext owner) {
    task = owner;
  }

  /** Processes a record that came in at a port. */
  abstract void process(StreamRecord record, int port);

  /** Forwards what waits in the node; called before outputs are committed. */
  void flush() {}

  /** Releases what the node holds besides memory. */
  void release() {}

  /** Writes what the node keeps in memory into its store; called before each commit. */
  void save() {}

  /** Hands a record to all consumers. One that cannot evaluate it leaves it to the task's policy for failures. */
  final void forward(StreamRecord record) {
    for (int index = 0; index < consumers.size(); index++) {
      pass(record, index);
    }
  }

  /**
   * Forwards a change of a table whose rows a step gives other values, or none.
   *
   * @throws EvaluationException if the step fails for the present value; it has then been forwarded as a removal
   */
  final void change(StreamRecord record, UnaryOperator<InternalRow> step) {
    InternalRow former =
        record.before() == null ? null : EvaluationException.orNull(() -> step.apply(record.before()));
    InternalRow now = null;
    EvaluationException failed = null;
    try {
      now = record.value() == null ? null : step.apply(record.value());
    } catch (EvaluationException failure) {
      failed = failure;
    }
    if (now != null || former != null) {
      forward(record.withChange(now, former));
    }
    if (failed != null) {
      throw failed;
    }
  }

  final void pass(StreamRecord record, int consumer) {
    Node next = consumers.get(consumer);
    try {
      next.process(record, ports.get(consumer));
    } catch (EvaluationException failure) {
      task.reject(next.name, record, failure);
    }
  }
}
