package jmsbridge.streams;

import java.util.ArrayList;
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
  void open(Task owner) {
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
    List<byte[]> answer = task.python().ask(function, List.of(batch.take()));
    List<UnsafeRow> rows = ArrowRows.read(answer.get(0), result);
    List<String> errors = new ArrayList<>();
    causes.forEach(each -> errors.add(null));
    for (UnsafeRow each : ArrowRows.read(answer.get(1), PythonProcess.FAILURES)) {
      errors.set(each.getInt(0), each.getUTF8String(1).toString());
    }
    if (copier == null) {
      copier = Rows.copier(type);
    }
    for (int at = 0; at < causes.size(); at++) {
      PythonBatch.Cause cause = causes.get(at);
      cause.resume(task);
      StreamRecord record = cause.record();
      if (errors.get(at) != null) {
        task.reject(name, record, new EvaluationException(new IllegalStateException(errors.get(at))));
      } else if (record.value() == null) {
        forward(record);
      } else {
        forward(record.withValue(copier.apply(new JoinedRow(record.value(), rows.get(at))).copy()));
      }
    }
    task.resumeLatest();
  }

  @Override
  void release() {
    batch.close();
  }
}
