"""Process of a topology's Python functions for one task: `python -m engine.topologies.library.python_worker`.

Requests come at the standard input, answers go to the standard output; output of functions goes to the standard error.
A message is the number of its parts and each part behind its length. The first message has the pickled functions; its
answer, without parts, says that they could be loaded. The first part of a request is the number of a function, further
parts are batches of Arrow. `PythonWorker` in `jvm/spark` is the other side, `PythonColumns` and `PythonProcess` there
describe the batches.

An answer has the numbers of pieces with outputs and with states, the failures, the changed timers, and pieces up to
`RESULT_BYTES`: the JVM holds no more at once. A request without batches asks for the next piece.
"""

from __future__ import annotations

import heapq
import os
import pickle
import signal
import struct
import sys
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import IO, Any, NamedTuple, TypeAlias

import pyarrow as pa

from engine.limits import RESULT_BYTES
from engine.topologies.library.function_watch import FunctionWatch
from engine.topologies.library.python_functions import InputRecord, PackedFunction, ProcessorContext, TimerFunction

__all__ = ["main"]

_MOST_LOGGED = 20
"""Failures of functions that the process writes to the log."""
_MOST_ERROR = 1_000
"""Characters of the text of a failure."""
_ROW_BYTES = RESULT_BYTES + 1024
"""Most bytes of a row of an answer: results, and the numbers beside them."""
_FAILURES = pa.schema([("row", pa.int32()), ("error", pa.string())])
_TIMERS = pa.schema([("slot", pa.int32()), ("time", pa.int64()), ("is_set", pa.bool_()), ("is_of_clock", pa.bool_())])
_NO_CLOCK = -(1 << 63)
"""Time in a request without timers of the clock."""
_ABOUT = ("key", "timestamp", "topic", "partition", "offset")


def main() -> None:
    """Answers requests until the input ends."""
    # Ctrl-C is for the bridge, which ends this process in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    packed = _read(requests)
    if packed is None:
        return
    # They come from the bridge itself, through a pipe of its own.
    watch = FunctionWatch(float(sys.argv[1]) if len(sys.argv) > 1 else None, requests.fileno())
    functions = [_function(PackedFunction(*pickle.loads(each)), watch) for each in packed]  # noqa: S301
    _write(answers, [])
    left: dict[int, deque[bytes]] = {}
    while (parts := _read(requests)) is not None:
        (number,) = struct.unpack(">i", parts[0])
        if len(parts) == 1:
            _write(answers, [left[number].popleft()])
            continue
        answer = functions[number].answer(parts[1:])
        pieces = left[number] = deque([*answer.outputs, *answer.states])
        sent: list[bytes] = []
        size = 0
        while pieces and (not sent or size + len(pieces[0]) <= RESULT_BYTES):
            size += len(pieces[0])
            sent.append(pieces.popleft())
        head = struct.pack(">ii", len(answer.outputs), len(answer.states))
        _write(answers, [head, answer.failures, answer.timers, *sent])


class _Answer(NamedTuple):
    """Answer to a request, as streams of Arrow."""

    failures: bytes
    outputs: list[bytes]
    states: list[bytes]
    timers: bytes


def _write(answers: IO[bytes], parts: list[bytes]) -> None:
    answers.write(struct.pack(">i", len(parts)))
    for part in parts:
        answers.write(struct.pack(">i", len(part)))
        answers.write(part)
    answers.flush()


def _read(requests: IO[bytes]) -> list[bytes] | None:
    """The parts of the next message; None at the end of the input."""
    if len(head := requests.read(4)) < 4:
        return None
    parts = []
    for _ in range(struct.unpack(">i", head)[0]):
        (length,) = struct.unpack(">i", requests.read(4))
        parts.append(requests.read(length))
    return parts


def _function(packed: PackedFunction, watch: FunctionWatch) -> _BatchFunction | _RecordFunction:
    return _RecordFunction(packed, watch) if packed.is_process else _BatchFunction(packed, watch)


class _Failures:
    """Failures of a function, as the batch of Arrow that tells them; the first ones go to the log too."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._logged = 0
        self._rows: list[int] = []
        self._errors: list[str] = []

    def add(self, row: int, error: BaseException) -> None:
        said = str(error)
        said = f"{said[:_MOST_ERROR]}..." if len(said) > _MOST_ERROR else said
        text = f"{type(error).__name__}: {said} ({_place(error)})"
        self._rows.append(row)
        self._errors.append(text)
        if self._logged < _MOST_LOGGED:
            self._logged += 1
            print(f"the function of node '{self._node}' failed: {text}", file=sys.stderr, flush=True)

    def take(self) -> bytes:
        data = _stream(pa.record_batch([self._rows, self._errors], _FAILURES))
        self._rows, self._errors = [], []
        return data


class _BatchFunction:
    """A function over whole batches."""

    def __init__(self, packed: PackedFunction, watch: FunctionWatch) -> None:
        self._function = packed.function
        self._watch = watch
        self._schema = pa.ipc.read_schema(pa.py_buffer(packed.output))
        self._failures = _Failures(packed.node)

    def answer(self, parts: list[bytes]) -> _Answer:
        batch = _batch(parts[0])
        rows = [row for row, is_valid in enumerate(batch["value"].is_valid().to_pylist()) if is_valid]
        present = _flat(batch if len(rows) == batch.num_rows else batch.take(pa.array(rows, pa.int32())))
        try:
            values = self._values(present)
        except BaseException:  # `sys.exit` too, and a call that took too long
            values = self._one_by_one(present, rows)
        if values.nbytes > RESULT_BYTES:
            values = self._bounded(values, rows)
        if len(rows) < batch.num_rows:
            places: list[int | None] = [None] * batch.num_rows
            for at, row in enumerate(rows):
                places[row] = at
            values = values.take(pa.array(places, pa.int32()))
        return _Answer(self._failures.take(), _pieces(pa.record_batch([values], self._schema)), [], b"")

    def _values(self, batch: pa.RecordBatch) -> pa.Array:
        kind = self._schema.field(0).type
        self._watch.begin()
        try:
            found = self._function(batch)
        finally:
            self._watch.end()
        if isinstance(found, pa.Array | pa.ChunkedArray):
            # Offsets in it are taken as they are from here on, in the JVM too.
            found.validate(full=True)
        if isinstance(found, pa.ChunkedArray):
            found = found.combine_chunks()
        values = found.cast(kind) if isinstance(found, pa.Array) else pa.array(found, kind)
        if len(values) != batch.num_rows:
            msg = f"it returned {len(values)} values for {batch.num_rows} records"
            raise ValueError(msg)
        return values

    def _one_by_one(self, batch: pa.RecordBatch, rows: list[int]) -> pa.Array:
        """The values, and the failures of those records for which the function fails."""
        kind, found = self._schema.field(0).type, []
        for at in range(batch.num_rows):
            try:
                values = self._values(batch.slice(at, 1))
                _check_size(values.nbytes)
                found.append(values)
            except BaseException as error:  # as above
                self._failures.add(rows[at], error)
                found.append(pa.nulls(1, kind))
        return pa.concat_arrays(found) if found else pa.nulls(0, kind)

    def _bounded(self, values: pa.Array, rows: list[int]) -> pa.Array:
        """The values without those that are too large, whose records fail."""
        found = []
        for at in range(len(values)):
            value = values.slice(at, 1)
            try:
                _check_size(value.nbytes)
            except ValueError as error:
                self._failures.add(rows[at], error)
                value = pa.nulls(1, values.type)
            found.append(value)
        return pa.concat_arrays(found)


_Results: TypeAlias = list[tuple[int, Mapping[str, Any]]]
"""Results of a function in their order, each with the place of its output."""


class _Outcome(NamedTuple):
    """Result of a function for one record or timer."""

    outputs: _Results
    row: int
    slot: int
    timer: int | None


class _RecordFunction:
    """A function of `process`, called for each record and timer in the order of time."""

    def __init__(self, packed: PackedFunction, watch: FunctionWatch) -> None:
        self._packed = packed
        self._watch = watch
        schemas = [pa.ipc.read_schema(pa.py_buffer(each)) for each in (packed.output, *packed.outputs.values())]
        self._kinds = [pa.struct(list(each)) for each in schemas]
        values = [(f"value{at}", kind) for at, kind in enumerate(self._kinds)]
        self._outputs = pa.schema([("row", pa.int32()), ("slot", pa.int32()), ("timer", pa.int64()), *values])
        self._names = [frozenset(each.names) for each in schemas]
        self._state = None
        fields = None
        if packed.state is not None:
            kept = pa.ipc.read_schema(pa.py_buffer(packed.state))
            self._state, fields = pa.struct(list(kept)), frozenset(kept.names)
        is_nested = self._state is not None and any(pa.types.is_nested(each.type) for each in self._state)
        has_clock = packed.on_clock is not None
        self._context = ProcessorContext(fields, is_nested=is_nested, outputs=packed.outputs, has_clock=has_clock)
        self._failures = _Failures(packed.node)

    def answer(self, parts: list[bytes]) -> _Answer:
        try:
            return self._answer(parts, is_careful=False)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            # A result does not fit its type. Each is now converted by itself, so that its record is told.
            self._failures.take()
            return self._answer(parts, is_careful=True)

    def _answer(self, parts: list[bytes], *, is_careful: bool) -> _Answer:
        run = _Run(self._packed, self._watch, self._context, self._state, self._failures, parts)
        if is_careful:
            run.check = self._check
        outcomes = run.outcomes()
        columns = ([each.row for each in outcomes for _ in each.outputs],
                   [each.slot for each in outcomes for _ in each.outputs],
                   [each.timer for each in outcomes for _ in each.outputs])  # fmt: skip
        results = [result for each in outcomes for result in each.outputs]
        for at, value in results:
            self._check_names(at, value)
        values = [[value if own == at else None for own, value in results] for at in range(len(self._kinds))]
        outputs = _pieces(pa.record_batch([*columns, *values], self._outputs))
        states, timers = ([], b"") if self._state is None else (run.states(), run.timers())
        return _Answer(self._failures.take(), outputs, states, timers)

    def _check(self, outputs: _Results, state: Mapping[str, Any] | None) -> None:
        for at, value in outputs:
            self._check_names(at, value)
        _check_size(sum(pa.array([value], self._kinds[at]).nbytes for at, value in outputs))
        if self._state is not None:
            _check_size(pa.array([state], self._state).nbytes)

    def _check_names(self, at: int, value: Mapping[str, Any]) -> None:
        if not value.keys() <= self._names[at]:
            unknown = ", ".join(sorted(map(str, value.keys() - self._names[at])))
            msg = f"{unknown}: no such field among those of the output, {', '.join(sorted(self._names[at]))}"
            raise ValueError(msg)


class _Timers:
    """Timers of stream time or of the clock, as times and slots, during one request."""

    def __init__(self, call: TimerFunction | None, due: Iterable[tuple[int, int]] = ()) -> None:
        self.call = call
        """The function that is called for them; None: they end without a call."""
        self._pending = set(due)
        self._heap = sorted(self._pending)
        self._cancelled: set[tuple[int, int]] = set()

    def next(self, until: int) -> tuple[int, int] | None:
        """Takes the earliest timer that is due until a time; None if there is none."""
        while self._heap and self._heap[0][0] <= until:
            timer = heapq.heappop(self._heap)
            if timer in self._pending:
                self._pending.discard(timer)
                return timer
        return None

    def set(self, timer: tuple[int, int]) -> None:
        self._cancelled.discard(timer)
        if timer not in self._pending:
            self._pending.add(timer)
            heapq.heappush(self._heap, timer)

    def cancel(self, timer: tuple[int, int]) -> None:
        self._pending.discard(timer)
        self._cancelled.add(timer)

    def changes(self) -> list[tuple[tuple[int, int], bool]]:
        """The timers that were cancelled, and those that are set."""
        return [
            *((timer, False) for timer in sorted(self._cancelled)),
            *((each, True) for each in sorted(self._pending)),
        ]


class _Run:
    """Calls of a function of `process` for one request."""

    def __init__(
        self,
        packed: PackedFunction,
        watch: FunctionWatch,
        context: ProcessorContext,
        state: pa.DataType | None,
        failures: _Failures,
        parts: list[bytes],
    ) -> None:
        self._function = packed.function
        self._watch = watch
        self._context = context
        self._failures = failures
        self._state_type = state
        self.check: Any = None
        """Raises for outputs and a state that do not fit their types; None: they are not looked at."""
        context.stream_time, self._end, context._clock, self._tick = struct.unpack(">qqqq", parts[0])
        self._batch = _batch(parts[1])
        self._keys: list[Any] = []
        self._states: list[dict[str, Any] | None] = []
        self._changed: dict[int, None] = {}
        self._ttl = packed.ttl_ms
        self._times: list[int | None] = []
        """Time of the latest record of each key; None: the key has no state. Empty if states do not expire."""
        timers: list[tuple[int, int]] = []
        self._outcomes: list[_Outcome] = []
        if state is not None:
            due, kept = _batch(parts[2]), _batch(parts[3])
            self._keys = kept["key"].to_pylist()
            self._states = _dicts(kept["state"])
            self._times = [] if self._ttl is None else kept["time"].to_pylist()
            timers = list(zip(due["time"].to_pylist(), due["slot"].to_pylist(), strict=True))
        is_tick = self._tick != _NO_CLOCK
        self._timers = _Timers(packed.on_timer, () if is_tick else timers)
        self._clock_timers = _Timers(packed.on_clock, timers if is_tick else ())

    def outcomes(self) -> list[_Outcome]:
        context, batch = self._context, self._batch
        slots = batch["slot"].to_pylist()
        for row, record in enumerate(_records(batch)):
            if record.timestamp > context.stream_time:
                context.stream_time = record.timestamp
                self._fire(row)
            slot = slots[row]
            context._begin(record.key, self._state(slot, context.stream_time) if self._states else None)
            try:
                outputs = self._called(self._function, record, context)
                if self.check is not None:
                    self.check(outputs, context._state)
            except BaseException as error:  # `sys.exit` too, and a call that took too long
                self._failures.add(row, error)
                continue
            self._take(_Outcome(outputs, row, slot, None), record.timestamp)
            self._fire(row)
        context.stream_time = self._end
        self._fire(batch.num_rows - 1)
        while (timer := self._clock_timers.next(self._tick)) is not None:
            self._call(self._clock_timers, timer, batch.num_rows - 1)
            self._fire(batch.num_rows - 1)
        return self._outcomes

    def _called(self, function: Callable[..., Any], *about: Any) -> _Results:
        self._watch.begin()
        try:
            result = function(*about)
            for each in [result] if isinstance(result, Mapping) else result or ():
                self._context.emit(each)
        finally:
            self._watch.end()
        return self._context._emitted

    def _fire(self, row: int) -> None:
        """Calls the function for the timers that are due, as caused by the record of a row."""
        while (timer := self._timers.next(self._context.stream_time)) is not None:
            self._call(self._timers, timer, row)

    def _call(self, timers: _Timers, timer: tuple[int, int], row: int) -> None:
        if timers.call is None:
            return
        at, slot = timer
        context = self._context
        is_of_clock = timers is self._clock_timers
        now = context.stream_time if is_of_clock else at
        context._begin(self._keys[slot], self._state(slot, now), at, is_of_clock=is_of_clock)
        try:
            outputs = self._called(timers.call, context, at)
            if self.check is not None:
                self.check(outputs, context._state)
        except BaseException as error:  # as above
            self._failures.add(row, error)
            return
        self._take(_Outcome(outputs, row, slot, at), now)

    def _state(self, slot: int, now: int) -> dict[str, Any] | None:
        """The state of a key at a stream time; None if there is none, or if it has expired."""
        if self._ttl is not None and (latest := self._times[slot]) is not None and latest + self._ttl < now:
            self._states[slot] = self._times[slot] = None
            self._changed[slot] = None
        return self._states[slot]

    def _take(self, outcome: _Outcome, now: int) -> None:
        """Takes over what a function has done for a record or a timer of a time."""
        if outcome.outputs:
            self._outcomes.append(outcome)
        context, slot = self._context, outcome.slot
        if context._is_changed:
            self._states[slot] = context._state
            self._changed[slot] = None
        if self._ttl is not None and self._states[slot] is None:
            self._times[slot] = None
        elif self._ttl is not None:
            # Also of a state that stays as it is.
            latest = self._times[slot]
            self._times[slot] = now if latest is None else max(now, latest)
            self._changed[slot] = None
        for at, is_set, is_of_clock in context._timers:
            timers = self._clock_timers if is_of_clock else self._timers
            (timers.set if is_set else timers.cancel)((at, slot))

    def states(self) -> list[bytes]:
        """The changed states, in pieces."""
        slots = list(self._changed)
        states = pa.array([self._states[slot] for slot in slots], self._state_type)
        # The key is known by its slot.
        columns = {"slot": pa.array(slots, pa.int32()), "key": pa.nulls(len(slots)), "state": states}
        if self._ttl is not None:
            columns["time"] = pa.array([self._times[slot] for slot in slots], pa.int64())
        return _pieces(pa.record_batch(columns))

    def timers(self) -> bytes:
        """The timers that were set or cancelled."""
        kinds = (self._timers, False), (self._clock_timers, True)
        changes = [(slot, at, each, kind) for timers, kind in kinds for (at, slot), each in timers.changes()]
        columns = [list(column) for column in zip(*changes, strict=True)] or [[], [], [], []]
        return _stream(pa.record_batch(columns, _TIMERS))


def _records(batch: pa.RecordBatch) -> Iterable[InputRecord]:
    headers: Iterable[tuple[tuple[str, bytes | None], ...]] = [()] * batch.num_rows
    if batch["headers"].null_count < batch.num_rows:
        headers = [tuple((each["name"], each["value"]) for each in row or ()) for row in batch["headers"].to_pylist()]
    columns = (_list(batch[name]) for name in ("topic", "partition", "offset"))
    return map(InputRecord, _list(batch["key"]), _dicts(batch["value"]), _list(batch["timestamp"]), headers, *columns)


def _flat(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch with the fields of the values, and the attributes of the records where no field has their names."""
    value = batch["value"]
    columns = dict(zip((each.name for each in value.type), value.flatten(), strict=True))
    for name in _ABOUT:
        column = batch[name]
        columns.setdefault(name, column.cast(pa.timestamp("ms", "UTC")) if name == "timestamp" else column)
    return pa.record_batch(list(columns.values()), list(columns))


def _dicts(column: pa.StructArray) -> list[dict[str, Any] | None]:
    """The values of a column of structs."""
    names = [each.name for each in column.type]
    rows = zip(*map(_list, column.flatten()), strict=True)
    if column.null_count == 0:
        return [dict(zip(names, row, strict=True)) for row in rows]
    present = column.is_valid().to_pylist()
    return [
        dict(zip(names, row, strict=True)) if is_there else None for row, is_there in zip(rows, present, strict=True)
    ]


def _list(column: pa.Array) -> list[Any]:
    """The values of a column; for numbers without gaps by NumPy, which is several times faster."""
    if column.null_count == 0 and (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        numbers: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
        return numbers
    values: list[Any] = column.to_pylist()
    return values


def _batch(stream: bytes) -> pa.RecordBatch:
    with pa.ipc.open_stream(stream) as reader:
        return reader.read_next_batch()


def _stream(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _pieces(batch: pa.RecordBatch) -> list[bytes]:
    """The batch as streams of Arrow of `RESULT_BYTES` at most; ValueError for a row that is larger."""
    if batch.nbytes <= RESULT_BYTES or batch.num_rows == 1:
        _check_size(batch.nbytes, _ROW_BYTES)
        return [_stream(batch)]
    half = batch.num_rows // 2
    return [*_pieces(batch.slice(0, half)), *_pieces(batch.slice(half))]


def _check_size(size: int, most: int = RESULT_BYTES) -> None:
    """Raises ValueError for results of a record, or a state, that are too large for the JVM."""
    if size > most:
        msg = f"it returned {size:,} bytes for one record; at most {RESULT_BYTES:,} are allowed"
        raise ValueError(msg)


def _place(error: BaseException) -> str:
    """File, line and function where an error was raised, in the user's code if it came from there."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [each for each in frames if each.filename != __file__ and "site-packages" not in each.filename]
    if not own:
        return "in its results"
    last = own[-1]
    return f"{last.filename}:{last.lineno} in {last.name}"


if __name__ == "__main__":
    main()
