package jmsbridge.streams;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * Has a Python function process each record and, where the node is keyed, the state and the timers of its key.
 *
 * <p>The function gets many records at once, with the states of their keys and the timers that are due up to the latest
 * of them; or the timers of the clock that are due. It answers with outputs, changed states and timers, and the records
 * that it could not process.
 */
final class PythonProcess extends StatefulNode {
  private static final long serialVersionUID = 1L;
  private static final char TIMER = 't';
  /** Place of the first output in a result; one of them has a value. */
  private static final int VALUES = 3;
  private static final char CLOCK_TIMER = 'c';
  /** The greatest of all times before any: no timer of the clock is due. */
  private static final long NO_CLOCK = Long.MIN_VALUE;
  private static final StructType TIMERS =
      new StructType().add("slot", DataTypes.IntegerType).add("time", DataTypes.LongType);
  private static final StructType TIMER_CHANGES = TIMERS.add("is_set", DataTypes.BooleanType).add("is_of_clock", DataTypes.BooleanType);

  private final int function;
  private final KeyKind key;
  private final StructType state;
  private final long ttl;
  private final RowCheck stateRow;
  private final StructType states;
  private final StructType outputs;
  private final List<StructType> further;
  /** Nodes of the further outputs; null for one that leads nowhere. */
  private final Node[] ways;
  private final PythonBatch batch;
  private transient Map<ByteBuffer, Integer> slots;
  private transient List<byte[]> keysOfSlots;
  private transient long begun;
  private transient ArrowRows stateRows;
  private transient ArrowRows timerRows;

  /**
   * Creates the node; {@code state} is null if it is not keyed, and is removed {@code ttl} milliseconds after the latest
   * record of its key; below 0: never. The first of the outputs is that of the node itself.
   */
  PythonProcess(
      String name, StructType from, KeyKind key, int function, List<StructType> types, StructType state, long ttl) {
    super(name, types.get(0));
    further = List.copyOf(types.subList(1, types.size()));
    ways = new Node[further.size()];
    this.function = function;
    this.key = key;
    this.state = state;
    this.ttl = ttl;
    stateRow = state == null ? null : new RowCheck(state);
    StructType kept = state == null ? new StructType().add("none", DataTypes.BooleanType) : state;
    StructType sent = new StructType().add("slot", DataTypes.IntegerType).add("key", key.type()).add("state", kept);
    states = ttl < 0 ? sent : sent.add("time", DataTypes.LongType);
    StructType results = new StructType()
        .add("row", DataTypes.IntegerType)
        .add("slot", DataTypes.IntegerType)
        .add("timer", DataTypes.LongType);
    for (int at = 0; at < types.size(); at++) {
      results = results.add("value" + at, types.get(at));
    }
    outputs = results;
    batch = new PythonBatch(from, key);
  }

  /** Fields of a further output. */
  StructType typeOf(int output) {
    return further.get(output);
  }

  /** Makes a node get the results for a further output. */
  void lead(int output, Node to) {
    ways[output] = to;
  }

  @Override
  StructType shownType() {
    return state;
  }

  @Override
  void open(TaskContext owner) {
    super.open(owner);
    batch.clear();
    slots = new HashMap<>();
    keysOfSlots = new ArrayList<>();
  }

  @Override
  void process(StreamRecord record, int port) {
    if (state != null && record.key() == null) {
      task.count(name, "null_keys");
      return;
    }
    if (ttl >= 0 && record.time() == StreamRecord.NO_TIME) {
      throw EvaluationException.noTime();
    }
    if (batch.isEmpty()) {
      begun = time();
    }
    if (record.time() != StreamRecord.NO_TIME) {
      observe(record.time());
    }
    if (batch.add(record, task.current(), state == null ? 0 : slot(record.key()))) {
      flush();
    }
  }

  private int slot(byte[] of) {
    return slots.computeIfAbsent(ByteBuffer.wrap(of), any -> {
      keysOfSlots.add(of);
      return keysOfSlots.size() - 1;
    });
  }

  @Override
  void flush() {
    if (!batch.isEmpty()) {
      call();
    }
  }

  @Override
  void expire() {
    if (state != null) {
      begun = time();
      call();
    }
  }

  @Override
  long due() {
    byte[] kind = keys(CLOCK_TIMER).done();
    List<Store.Entry> first = task.store().range(kind, Keys.behind(kind), 1);
    return first.isEmpty() ? Long.MAX_VALUE : time(first.get(0));
  }

  @Override
  void tick(long clock) {
    flush();
    List<Store.Entry> due = due(CLOCK_TIMER, clock);
    if (!due.isEmpty()) {
      begun = time();
      call(due, clock);
    }
  }

  /** Time of a timer. */
  private static long time(Store.Entry timer) {
    return new Keys.Reader(timer.key()).number();
  }

  /** Has the function process the records that wait and the timers that are due. */
  private void call() {
    call(due(TIMER, time()), NO_CLOCK);
  }

  /** Has the function process the records that wait and timers, which are those of the clock if it has a time. */
  private void call(List<Store.Entry> due, long clock) {
    List<PythonBatch.Cause> causes = batch.causes();
    try {
      call(causes, begun, time(), due, clock);
    } catch (PythonEndedException ended) {
      forgetSlots();
      singly(causes, due, clock, ended);
    }
    if (ttl >= 0) {
      outdated(ttl);
    }
    task.resumeLatest();
  }

  /** Timers of a kind that are due at a time. */
  private List<Store.Entry> due(char kind, long at) {
    return state == null ? List.of() : task.store().range(keys(kind).done(), keys(kind).number(at + 1).done());
  }

  /**
   * Has the function process each record and each timer of a request that has ended its process by itself, in the order
   * of their times, to find which one did: that record is rejected, and that timer is gone.
   */
  private void singly(List<PythonBatch.Cause> causes, List<Store.Entry> due, long clock, PythonEndedException ended) {
    boolean isKnown = causes.size() + due.size() == 1;
    long at = begun;
    for (PythonBatch.Cause each : causes) {
      long until = Math.max(at, each.record().time());
      each.resume(task);
      fire(TIMER, at, until, each.record(), isKnown ? ended : null);
      PythonEndedException failure = isKnown ? ended : null;
      if (failure == null) {
        batch.add(each.record(), each.source(), state == null ? 0 : slot(each.record().key()));
        try {
          call(List.of(each), until, until, List.of(), NO_CLOCK);
        } catch (PythonEndedException again) {
          failure = again;
        }
      }
      if (failure != null) {
        forgetSlots();
        task.reject(name, each.record(), new EvaluationException(failure));
      }
      at = until;
    }
    StreamRecord last = causes.isEmpty() ? StreamRecord.of(null, null, time()) : causes.get(causes.size() - 1).record();
    fire(TIMER, at, time(), last, isKnown ? ended : null);
    fire(CLOCK_TIMER, time(), clock, last, isKnown ? ended : null);
  }

  /** Calls the function for the timers that are due, one at a time; {@code known} is why the only one fails, or null. */
  private void fire(char kind, long from, long until, StreamRecord cause, PythonEndedException known) {
    for (List<Store.Entry> due = due(kind, until); !due.isEmpty(); due = due(kind, until)) {
      Store.Entry timer = due.get(0);
      PythonEndedException failure = known;
      if (failure == null) {
        try {
          boolean isOfClock = kind == CLOCK_TIMER;
          call(batch.causes(), from, isOfClock ? from : time(timer), List.of(timer), isOfClock ? time(timer) : NO_CLOCK);
        } catch (PythonEndedException again) {
          failure = again;
        }
      }
      if (failure != null) {
        forgetSlots();
        task.store().remove(timer.key());
        task.reject(name, cause, new EvaluationException(failure));
      }
    }
  }

  /** One request; nothing has changed if it ends the process of the function. */
  private void call(List<PythonBatch.Cause> causes, long from, long until, List<Store.Entry> due, long clock) {
    List<byte[]> parts = new ArrayList<>();
    ByteBuffer times = ByteBuffer.allocate(4 * Long.BYTES);
    parts.add(times.putLong(from).putLong(until).putLong(task.clock()).putLong(clock).array());
    parts.add(batch.take());
    if (state != null) {
      if (stateRows == null) {
        stateRows = new ArrowRows(states);
        timerRows = new ArrowRows(TIMERS);
      }
      parts.add(timers(due));
      parts.add(states());
    }
    PythonAnswer answer = task.python().ask(function, parts);
    due.forEach(each -> task.store().remove(each.key()));
    answer.outputs(outputs, each -> {
      StreamRecord cause = resume(causes, each.getInt(0));
      int output = 0;
      while (each.isNullAt(VALUES + output)) {
        output++;
      }
      int size = output == 0 ? type.size() : further.get(output - 1).size();
      UnsafeRow value = each.getStruct(VALUES + output, size).copy();
      StreamRecord result = each.isNullAt(2)
          ? cause.withValue(value) : StreamRecord.of(keysOfSlots.get(each.getInt(1)), value, each.getLong(2));
      if (output == 0) {
        forward(result);
      } else if (ways[output - 1] != null) {
        ways[output - 1].process(result, 0);
      }
    });
    answer.failures((row, error) ->
        task.reject(name, resume(causes, row), new EvaluationException(new IllegalStateException(error))));
    if (state != null) {
      take(answer, until);
      forgetSlots();
    }
  }

  private void forgetSlots() {
    slots.clear();
    keysOfSlots.clear();
  }

  /** Goes on with the record of a row; a negative row is that of time alone. */
  private StreamRecord resume(List<PythonBatch.Cause> causes, int row) {
    if (row < 0) {
      return StreamRecord.of(null, null, time());
    }
    causes.get(row).resume(task);
    return causes.get(row).record();
  }

  /** Timers as a stream of Arrow. */
  private byte[] timers(List<Store.Entry> due) {
    for (Store.Entry each : due) {
      Keys.Reader reader = new Keys.Reader(each.key());
      long at = reader.number();
      timerRows.add(new GenericInternalRow(new Object[] {slot(reader.bytes()), at}));
    }
    return timerRows.take();
  }

  private byte[] states() {
    for (int slot = 0; slot < keysOfSlots.size(); slot++) {
      byte[] of = keysOfSlots.get(slot);
      byte[] kept = task.store().get(keys(STATE).bytes(of).done());
      InternalRow row = kept == null ? null : row(kept);
      Object at = key.read(of);
      Long time = kept == null || ttl < 0 ? null : Rows.time(kept);
      stateRows.add(new GenericInternalRow(
          ttl < 0 ? new Object[] {slot, at, row} : new Object[] {slot, at, row, time}));
    }
    return stateRows.take();
  }

  /** The state in an entry, where it is behind a time if it expires. */
  private InternalRow row(byte[] kept) {
    return ttl < 0 ? stateRow.kept(kept, 0) : Rows.timedRow(kept, stateRow);
  }

  /** Takes changed states and timers into the store, as of a stream time. */
  private void take(PythonAnswer answer, long until) {
    answer.states(states, each -> {
      byte[] at = keys(STATE).bytes(keysOfSlots.get(each.getInt(0))).done();
      if (each.isNullAt(2)) {
        task.store().remove(at);
      } else {
        put(at, each.getStruct(2, state.size()).copy(), ttl < 0 ? until : each.getLong(3), until);
      }
    });
    for (UnsafeRow each : ArrowRows.read(answer.timers(), TIMER_CHANGES)) {
      byte[] at = keys(each.getBoolean(3) ? CLOCK_TIMER : TIMER).number(each.getLong(1)).bytes(keysOfSlots.get(each.getInt(0))).done();
      if (each.getBoolean(2)) {
        task.store().put(at, new byte[0]);
      } else {
        task.store().remove(at);
      }
    }
  }

  private void put(byte[] at, UnsafeRow row, long latest, long until) {
    if (ttl < 0) {
      task.store().put(at, Rows.bytes(row));
      return;
    }
    if (latest + ttl < until) {
      // That of a late record is past at once.
      task.store().remove(at);
      return;
    }
    if (task.store().get(at) == null) {
      expireAfter(latest + ttl, at);
    }
    task.store().put(at, Rows.timed(latest, row));
  }

  @Override
  StreamRecord shown(Store.Entry entry) {
    byte[] of = new Keys.Reader(entry.key()).bytes();
    return StreamRecord.of(of, row(entry.value()), 0);
  }

  @Override
  void release() {
    batch.close();
    if (stateRows != null) {
      stateRows.close();
      timerRows.close();
      stateRows = null;
      timerRows = null;
    }
  }
}
