"""Python functions of a topology: the users' declarations, and the form in which the worker process gets them.

`python` makes a function over Arrow batches an expression. A function of `Stream.process` gets an `InputRecord` and a
`ProcessorContext`. `pickled` packs a function for `python_worker`, the process that runs it.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, TypeAlias

from pyspark import cloudpickle

from engine.topologies.library.served_modules import with_served

__all__ = [
    "BatchFunction",
    "InputRecord",
    "PackedFunction",
    "ProcessFunction",
    "ProcessorContext",
    "PythonFunction",
    "TimerFunction",
    "name_of",
    "pickled",
    "python",
    "without_result",
]

BatchFunction: TypeAlias = Callable[[Any], Any]
"""A function from a `pyarrow.RecordBatch` of n records to n values: an Arrow or NumPy array, or a list."""


@dataclass(frozen=True, slots=True)
class PythonFunction:
    """Function over Arrow batches in place of an expression; make one with `python`."""

    function: BatchFunction
    returns: str
    """Type of its values as text of Spark SQL."""


def python(function: BatchFunction, returns: str) -> PythonFunction:
    """A function that computes a condition, a key or a field for many records at once.

        stream.map_values(score=python(lambda batch: model.predict(batch["amount"]), "double"))

    Args:
        function: gets a `pyarrow.RecordBatch` with the fields of the values and `key`, `timestamp`, `topic`,
            `partition` and `offset`; returns a value for each record.
        returns: type of the values as text of Spark SQL, such as `double` or `struct<score double, label string>`.
    """
    return PythonFunction(function, returns)


def without_result(function: BatchFunction) -> PythonFunction:
    """The function, called for its effect; its values are NULL."""

    def call(batch: Any) -> list[None]:
        function(batch)
        return [None] * batch.num_rows

    return PythonFunction(functools.update_wrapper(call, function), "boolean")


class InputRecord(NamedTuple):
    """A record that a function of `process` gets."""

    key: Any
    """Text, bytes or a number, as the stream's keys are; None: none."""
    value: dict[str, Any] | None
    """Fields of the value; None for a record without one."""
    timestamp: int
    """Milliseconds since 1970; -1: the record has no time."""
    headers: tuple[tuple[str, bytes | None], ...]
    topic: str | None
    """Topic that the record was read from, with `partition` and `offset`; None if it comes of several records."""
    partition: int
    offset: int

    def __getattr__(self, name: str) -> NoReturn:
        """Raises AttributeError that says how a field is written."""
        text = f"a record has no '{name}'"
        if not name.startswith("_"):
            text += f': a field is written record.value["{name}"]'
        raise AttributeError(text, name=name, obj=self)


class ProcessorContext:
    """State and timers of the key of the record or the timer that a function of `process` is called for."""

    def __init__(
        self,
        fields: frozenset[str] | None,
        *,
        is_nested: bool,
        outputs: Iterable[str] = (),
        has_clock: bool = False,
    ) -> None:
        """Creates the context of functions whose state has these fields; None: they keep none.

        `outputs` are the names of their further outputs; `has_clock` is true if timers of the clock can be set.
        """
        self.key: Any = None
        """Key of the record or timer."""
        self.stream_time = -(1 << 63)
        """Latest time of a record that the node has met in this partition, in milliseconds since 1970."""
        self._fields = fields
        self._is_nested = is_nested
        self._has_clock = has_clock
        self._clock = 0
        self._now: int | None = None
        self._is_of_clock = False
        self._state: dict[str, Any] | None = None
        self._is_changed = False
        self._timers: list[tuple[int, bool, bool]] = []
        self._outputs = (None, *outputs)
        self._emitted: list[tuple[int, Mapping[str, Any]]] = []
        """Results in their order, each with the place of its output."""

    @property
    def state(self) -> dict[str, Any] | None:
        """The state of the key, a copy; None if there is none. An assigned value is kept; None removes it."""
        self._check()
        if self._state is None:
            return None
        return copy.deepcopy(self._state) if self._is_nested else dict(self._state)

    @state.setter
    def state(self, state: Mapping[str, Any] | None) -> None:
        fields = self._check()
        if state is not None and not state.keys() <= fields:
            unknown = ", ".join(sorted(map(str, state.keys() - fields)))
            msg = f"the state has no field {unknown}; it has {', '.join(sorted(fields))}"
            raise KeyError(msg)
        self._state = None if state is None else dict(state)
        self._is_changed = True

    def emit(self, result: Mapping[str, Any], *, to: str | None = None) -> None:
        """Forwards a result, a mapping from fields to values, to an output of `process`; without `to` as one returned.

        Results are forwarded in the order in which they are emitted, yielded and returned, if the function ends well.
        Raises ValueError for an output that `process` does not declare, TypeError for a result that is not a mapping.
        """
        if to not in self._outputs:
            known = ", ".join(self._outputs[1:]) or "none"  # type: ignore[arg-type]
            msg = f"there is no output {to!r}; process() declares {known} in outputs={{…}}"
            raise ValueError(msg)
        if not isinstance(result, Mapping):
            msg = f"it forwards a {type(result).__name__}; its results have to be mappings from fields to values"
            raise TypeError(msg)
        self._emitted.append((self._outputs.index(to), dict(result)))

    def schedule(self, at: int) -> None:
        """Sets a timer of the key: `on_timer` is called when stream time reaches `at`, in milliseconds since 1970.

        A key can have any number of timers, one for each time. A time that has passed comes right behind this record.
        Raises ValueError in `on_timer` for a time that is not later than the timer's.
        """
        self._check()
        self._set(at, is_of_clock=False)

    def cancel(self, at: int) -> None:
        """Removes the timer of the key at a time, if there is one."""
        self._check()
        self._timers.append((int(at), False, False))

    @property
    def clock(self) -> int:
        """The time of the clock, in milliseconds since 1970: in batches that at which the batch was planned.

        A batch that is repeated after a crash has the same time. Raises TypeError without `on_clock`.
        """
        self._check_clock()
        return self._clock

    def schedule_clock(self, at: int) -> None:
        """Sets a timer of the key: `on_clock` is called when the clock reaches `at`, in milliseconds since 1970.

        A key can have any number of timers, one for each time. Raises TypeError without `on_clock`, and ValueError in
        `on_clock` for a time that is not later than the timer's.
        """
        self._check_clock()
        self._set(at, is_of_clock=True)

    def cancel_clock(self, at: int) -> None:
        """Removes the timer of the key at a time of the clock, if there is one; TypeError without `on_clock`."""
        self._check_clock()
        self._timers.append((int(at), False, True))

    def _set(self, time_ms: int, *, is_of_clock: bool) -> None:
        if self._now is not None and self._is_of_clock == is_of_clock and time_ms <= self._now:
            msg = f"a timer at {time_ms} cannot be set by the timer at {self._now}: it must be later"
            raise ValueError(msg)
        self._timers.append((int(time_ms), True, is_of_clock))

    def _check_clock(self) -> None:
        self._check()
        if not self._has_clock:
            msg = "process() follows no clock: give it the function of its timers, on_clock="
            raise TypeError(msg)

    def _check(self) -> frozenset[str]:
        if self._fields is None:
            msg = "process() has no state: give it the fields, such as state='count int'"
            raise TypeError(msg)
        return self._fields

    def _begin(
        self, key: Any, state: dict[str, Any] | None, now: int | None = None, *, is_of_clock: bool = False
    ) -> None:
        self.key, self._state, self._now, self._is_of_clock = key, state, now, is_of_clock
        self._is_changed = False
        self._timers.clear()
        self._emitted = []


ProcessFunction: TypeAlias = Callable[[InputRecord, ProcessorContext], Iterable[Mapping[str, Any]] | None]
"""A function from a record to the values of the records that are forwarded."""
TimerFunction: TypeAlias = Callable[[ProcessorContext, int], Iterable[Mapping[str, Any]] | None]
"""A function that is called for a timer, with its time in milliseconds since 1970."""


class PackedFunction(NamedTuple):
    """A function as the worker process gets it."""

    node: str
    function: Callable[..., Any]
    on_timer: TimerFunction | None
    output: bytes
    """Schema of Arrow of the results."""
    state: bytes | None
    """Schema of Arrow of the state; None: none."""
    is_process: bool
    outputs: Mapping[str, bytes]
    """Schemas of Arrow of the results for further outputs of a process, by the names of these."""
    on_clock: TimerFunction | None = None
    ttl_ms: int | None = None
    """Milliseconds of stream time after the latest record of a key at which its state is removed; None: never."""


def pickled(packed: PackedFunction) -> bytes:
    """The function as bytes; ValueError if it holds something that cannot be copied to another process."""
    try:
        data: bytes = cloudpickle.dumps(packed)  # type: ignore[no-untyped-call]
    except Exception as error:
        msg = f"{name_of(packed.function)} cannot be copied to another process: {error}"
        raise ValueError(msg) from error
    # Functions of modules go by their names: their process has to import the same code.
    return with_served(data)


def name_of(function: Callable[..., Any]) -> str:
    """Module and name of a function."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', '')}.{name}".removeprefix(".")
