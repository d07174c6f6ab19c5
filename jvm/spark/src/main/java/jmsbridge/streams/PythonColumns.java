package jmsbridge.streams;

import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;

/** Adds a field to each record, which a Python function computes from the columns of many records at once. */
final class PythonColumns extends Node {
  private static final long serialVersionUID = 1L;

  private final int function;
  private final StructType result;
  private final PythonBatch batch;
  private transient UnsafeProjection copier;

  /** Creates the node; {@code result} has the new field alone. */
  PythonColumns(String name, StructType type, KeyKind key, int function, StructType result) {
    super(name, type.add(result.fields()[0]));
    this.function = function;
    this.result = result;
    batch = new PythonBatch(type, key);
  }

  @Override
  void open(TaskContext owner) {
    super.open(owner);
    batch.clear();
  }

  @Override
  void process(StreamRecord record, int port) {
    StreamRecord kept = record.value() == null ? record : record.withValue(((UnsafeRow) record.value()).copy());
    if (batch.add(kept, task.current(), 0)) {
      flush();
    }
  }

  @Override
  void flush() {
    if (batch.isEmpty()) {
      return;
    }
    List<PythonBatch.Cause> causes = batch.causes();
    try {
      forward(causes, ask());
    } catch (PythonEndedException ended) {
      singly(causes, ended);
    }
    task.resumeLatest();
  }

  private PythonAnswer ask() {
    return task.python().ask(function, List.of(batch.take()));
  }

  /** Has the function process each record of a request that has ended its process by itself, to find which one did. */
  private void singly(List<PythonBatch.Cause> causes, PythonEndedException ended) {
    for (PythonBatch.Cause cause : causes) {
      PythonEndedException failure = causes.size() == 1 ? ended : null;
      if (failure == null) {
        batch.add(cause.record(), cause.source(), 0);
        try {
          forward(List.of(cause), ask());
        } catch (PythonEndedException second) {
          failure = second;
        }
      }
      if (failure != null) {
        cause.resume(task);
        task.reject(name, cause.record(), new EvaluationException(failure));
      }
    }
  }

  private void forward(List<PythonBatch.Cause> causes, PythonAnswer answer) {
    String[] errors = new String[causes.size()];
    answer.failures((row, error) -> errors[row] = error);
    if (copier == null) {
      copier = Rows.copier(type);
    }
    Iterator<PythonBatch.Cause> next = causes.iterator();
    int[] at = {0};
    answer.outputs(result, row -> forward(next.next(), errors[at[0]++], row));
  }

  private void forward(PythonBatch.Cause cause, String error, UnsafeRow row) {
    cause.resume(task);
    StreamRecord record = cause.record();
    if (error != null) {
      task.reject(name, record, new EvaluationException(new IllegalStateException(error)));
    } else if (record.value() == null) {
      forward(record);
    } else {
      forward(record.withValue(copier.apply(new JoinedRow(record.value(), row)).copy()));
    }
  }

  @Override
  void release() {
    batch.close();
  }
}
