"""Test driver: runs a topology on a few records without a broker.

    with TopologyTestDriver(build()) as driver:
        driver.pipe_input("orders", "k", {"customer": "ann", "amount": 5.0}, timestamp=1_000)
        assert driver.read_output("totals") == [Output("ann", {"total": 5.0}, 1_000, ())]

The driver opens a Spark session, unless it is given one. It runs the program that runs against Kafka, with state in
memory, and internal topics that are read at once.
"""

from __future__ import annotations

import json
import struct
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from engine.spark.shared_session import SharedSession
from engine.topologies.library.nodes import SourceNode
from engine.topologies.library.program import JVM_ERRORS, Program, check_classes, java_serde, plan, reason_of
from engine.topologies.library.schema_serdes import SchemaSerde
from engine.topologies.library.serdes import KeyKind
from engine.topologies.library.state import NodeState
from engine.topologies.library.topology import Topology, TopologyError
from engine.topologies.library.windows import Duration, milliseconds

__all__ = ["Output", "TopologyTestDriver"]

_LEFT: deque[Any] = deque()
"""Java objects of drivers that are gone, closed by a later driver. Python may collect a driver in the middle of a call
into the JVM, and another call on the same connection would then break both."""


@dataclass(frozen=True, slots=True)
class Output:
    """A published record: key and value as fields of their schemas, the value also of JSON, or as text."""

    key: Any
    value: Any
    timestamp: int
    """Milliseconds since 1970; the present time if the record that it comes from had no time."""
    headers: tuple[tuple[str, bytes | None], ...] = ()


class TopologyTestDriver:
    """Runner of a topology in a Spark session, whose state lasts as long as the driver."""

    def __init__(
        self,
        topology: Topology | Callable[[], Topology],
        spark: SparkSession | None = None,
        *,
        on_failure: str = "dead-letter",
        wall_clock_ms: int | None = None,
    ) -> None:
        """Creates the driver; `plan` describes `on_failure` and the errors at the first input.

        Args:
            topology: the topology, or the function that builds it, which is called when the session is open, as one
                that makes Columns needs.
            spark: a session with the project's Java classes; None: that of the process, or a new one, which the
                drivers of the process share and the last one that is closed ends.
            on_failure: `dead-letter`, `skip` or `stop`.
            wall_clock_ms: time that the driver's clock shows at first, in milliseconds since 1970; None: the present.
                It stands still but for `advance_wall_clock`.

        Raises:
            TypeError: the argument is neither a topology nor a function that returns one.
            SetupError: no session can be opened.
        """
        if not callable(topology):
            _check(topology)
        self._share: SharedSession | None = None
        if spark is None:
            self._share = SharedSession()
            spark = self._share.spark
        self._spark = spark
        try:
            self._topology = topology() if callable(topology) else topology
            _check(self._topology)
        except BaseException:
            self._give_back()
            raise
        self._on_failure = on_failure
        self._wall_clock_ms = round(time.time() * 1000) if wall_clock_ms is None else wall_clock_ms
        self._run: Any = None
        self._left: weakref.finalize[..., TopologyTestDriver] | None = None
        self._program: Program | None = None
        self._registry: Any = None

    @property
    def spark(self) -> SparkSession:
        """The session of the driver, which other drivers may be given."""
        return self._spark

    def __enter__(self) -> TopologyTestDriver:
        """Returns the driver."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the driver."""
        self.close()

    def register(self, subject: str, serde: SchemaSerde) -> int:
        """Registers the schema of a serde in the driver's own registry, which begins empty; the schema's id."""
        jvm: Any = self._spark._jvm
        made = java_serde(serde, jvm.jmsbridge.serdes.SchemaSerde, self._schemas())
        try:
            return int(made.register(subject))
        except JVM_ERRORS as error:
            raise TopologyError([reason_of(error)]) from error

    def _schemas(self) -> Any:
        if self._registry is None:
            check_classes(self._spark)
            jvm: Any = self._spark._jvm
            self._registry = jvm.jmsbridge.serdes.MemoryRegistry()
            weakref.finalize(self, _LEFT.append, self._registry)
        return self._registry

    def pipe_input(
        self,
        topic: str,
        key: Mapping[str, Any] | str | bytes | int | None,
        value: Mapping[str, Any] | str | bytes | None,
        timestamp: int = 0,
        headers: Mapping[str, str | bytes | None] | Iterable[tuple[str, str | bytes | None]] = (),
    ) -> None:
        """Processes one record; a key or value that is not bytes is written in the form of the topic's.

        `timestamp` is in milliseconds since 1970; below 0, the record has no time, as in Kafka. `headers` are pairs of
        a name and bytes or text, such as `[("region", b"emea")]`, or a mapping.

        Raises:
            TopologyError: the topology cannot be planned, or a record failed whose policy is to stop.
            ValueError: the topology does not read the topic.
        """
        source = next((each for each in self._topology.sources if each.topic == topic), None)
        if source is None:
            msg = f"the topology does not read {topic}"
            raise ValueError(msg)
        running = self._running()
        jvm: Any = self._spark._jvm
        flat = jvm.java.util.ArrayList()
        for name, data in headers.items() if isinstance(headers, Mapping) else headers:
            flat.add(name)
            flat.add(_encoded(data))
        try:
            content = self._content(topic, value) if isinstance(value, Mapping) else _encoded(value)
            running.pipe(topic, self._key(source, key), content, timestamp, flat)
        except JVM_ERRORS as error:
            raise TopologyError([reason_of(error)]) from error

    def advance_time(self, timestamp: int) -> None:
        """Moves the stream time of all nodes on to a time, as a record of it would: windows close, timers fire.

        `timestamp` is in milliseconds since 1970. Raises TopologyError as `pipe_input`.
        """
        try:
            self._running().advance(timestamp)
        except JVM_ERRORS as error:
            raise TopologyError([reason_of(error)]) from error

    def advance_wall_clock(self, duration: Duration) -> None:
        """Moves the driver's clock on by a duration: windows and timers that follow it close and fire, in order.

        Raises ValueError for a text that is not a duration, and TopologyError as `pipe_input`.
        """
        now = self._wall_clock_ms + milliseconds(duration)
        try:
            self._running().advanceClock(now)
        except JVM_ERRORS as error:
            raise TopologyError([reason_of(error)]) from error
        self._wall_clock_ms = now

    def read_output(self, topic: str, *, as_bytes: bool = False) -> list[Output]:
        """The records published to a topic since they were last read, in their order.

        `as_bytes` leaves their values, and keys that have a schema, as they are in Kafka.
        """
        packed = bytes(self._running().take(topic))
        return list(
            _outputs(
                packed,
                lambda key: self._decoded_key(topic, key, as_bytes=as_bytes),
                lambda value: value if as_bytes else self._decoded(topic, value),
            )
        )

    def get_store(self, node: str) -> NodeState:
        """The state of a node; StateError if it keeps none that can be shown."""
        running = self._running()
        assert self._program is not None
        jvm: Any = self._spark._jvm
        return NodeState(
            self._program,
            node,
            lambda *bounds, place: running.state(node, jvm.jmsbridge.streams.StateRange(*bounds), place),
        )

    def rejected(self) -> list[Output]:
        """The records that went to the dead-letter topic since they were last read, with the reasons in headers."""
        self._running()
        assert self._program is not None
        return self.read_output(self._program.dead_letters)

    def counts(self) -> dict[tuple[str, str], int]:
        """Numbers of records that nodes did not process, by node and reason, such as ("totals", "late_records")."""
        counted: Any = self._running().counts()
        return {(name.split("\t")[0], name.split("\t")[1]): number for name, number in counted.items()}

    def _content(self, topic: str, value: Mapping[str, Any]) -> bytes:
        assert self._program is not None
        return bytes(self._program.planner.encoded(topic, json.dumps(value).encode()))

    def _key(self, source: SourceNode, key: Any) -> bytes | None:
        if key is None or isinstance(key, bytes):
            return key
        if isinstance(source.key, SchemaSerde):
            assert self._program is not None
            return bytes(self._program.planner.encodedKey(source.topic, json.dumps(key).encode()))
        if source.key is KeyKind.LONG and isinstance(key, int):
            return key.to_bytes(8, "big", signed=True)
        return (json.dumps(key) if isinstance(key, Mapping) else str(key)).encode()

    def _decoded_key(self, topic: str, key: bytes, *, as_bytes: bool) -> Any:
        assert self._program is not None
        decoded = None if topic == self._program.dead_letters else self._program.planner.decodedKey(topic, key)
        if decoded is None:
            return key.decode("utf-8", "replace")
        return key if as_bytes else json.loads(bytes(decoded))

    def _decoded(self, topic: str, value: bytes) -> Any:
        assert self._program is not None
        is_letter = topic == self._program.dead_letters
        return _parsed(value if is_letter else bytes(self._program.planner.decoded(topic, value)))

    def close(self) -> None:
        """Ends the driver's resources: the process of Python functions, and its share in the session.

        The session ends with the last driver that shares it; one that was given stays. A driver that is not closed
        leaves its process to a later driver, and the session to the end of this process.
        """
        if self._left is not None and self._left.detach():
            _close(self._run)
        self._give_back()

    def _give_back(self) -> None:
        if self._share is not None:
            self._share.close()

    def _running(self) -> Any:
        if self._run is None:
            while _LEFT:
                _close(_LEFT.popleft())
            self._program = plan(self._topology, self._spark, on_failure=self._on_failure, registry=self._schemas())
            jvm: Any = self._spark._jvm
            self._run = jvm.jmsbridge.streams.TestRun(self._program.java)
            self._run.clock(self._wall_clock_ms)
            self._left = weakref.finalize(self, _LEFT.append, self._run)
        return self._run


def _check(topology: object) -> None:
    if not isinstance(topology, Topology):
        given = "None" if topology is None else f"a {type(topology).__name__}"
        msg = f"the driver takes a topology, not {given}; pass the result of `builder.build()`"
        raise TypeError(msg)


def _close(run: Any) -> None:
    """Closes a run; one whose JVM has ended is closed."""
    with suppress(Py4JError, OSError):
        run.close()


def _encoded(content: str | bytes | None) -> bytes | None:
    return content.encode() if isinstance(content, str) else content


def _outputs(packed: bytes, decoded_key: Callable[[bytes], Any], decoded: Callable[[bytes], Any]) -> Iterator[Output]:
    """The records in the bytes that `jmsbridge.streams.TestRun.take` returns."""
    position = 0
    while position < len(packed):
        timestamp, count = struct.unpack_from(">qi", packed, position)
        position += 12
        fields: list[bytes | None] = []
        for _ in range(count):
            (length,) = struct.unpack_from(">i", packed, position)
            position += 4
            fields.append(None if length < 0 else packed[position : position + length])
            position += max(length, 0)
        key, value, *headers = fields
        pairs = (
            (str(name, "utf-8"), data)
            for name, data in zip(headers[::2], headers[1::2], strict=True)
            if name is not None
        )
        yield Output(
            None if key is None else decoded_key(key),
            None if value is None else decoded(value),
            timestamp,
            tuple(pairs),
        )


def _parsed(value: bytes) -> Any:
    """JSON as its value, other text as it is."""
    text = value.decode("utf-8", "replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
