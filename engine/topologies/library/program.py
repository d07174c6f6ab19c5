"""Program of a topology: its nodes in the JVM, with the code that Spark generates for their expressions.

A topology runs as one program per share of the partitions (`jmsbridge.streams` in `jvm/spark`): each record goes
through all nodes at once, in the task that has read it.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from functools import singledispatchmethod
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from py4j.java_gateway import JavaClass
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import Column
from pyspark.sql import functions as F

from engine.errors import SetupError
from engine.jars import jars
from engine.topologies.library.expressions import ExpressionError
from engine.topologies.library.guidance import users_frame
from engine.topologies.library.nodes import (
    SHOWN,
    Aggregate,
    Branch,
    Deduplicate,
    DropField,
    Expression,
    Filter,
    FlatMap,
    GlobalTableNode,
    GroupTable,
    JoinForeign,
    JoinGlobal,
    JoinStreams,
    JoinTable,
    JoinTables,
    KeyedProcess,
    MapValues,
    Merge,
    Node,
    Process,
    ProcessOutput,
    PythonColumn,
    Repartition,
    SelectKey,
    SinkNode,
    SourceNode,
    Split,
    ToStream,
    ToTable,
    WithHeaders,
    column_of,
)
from engine.topologies.library.python_functions import PackedFunction, pickled
from engine.topologies.library.row import HeaderView, JvmFunctions, Row
from engine.topologies.library.schema_serdes import SchemaSerde
from engine.topologies.library.serdes import ColumnSerde, Key, KeyKind, Serde, SerdeKind, key_form
from engine.topologies.library.topology import Topology, TopologyError
from engine.topologies.library.windows import (
    CalendarWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    Windows,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import SparkSession

__all__ = ["JVM_ERRORS", "Program", "check_classes", "is_outage", "java_serde", "plan", "reason_of"]

JVM_ERRORS = (PySparkException, Py4JJavaError)
"""Errors of calls into the JVM; Spark makes its own of some of Java's."""


@dataclass(frozen=True, slots=True)
class Program:
    """A planned topology."""

    topology: Topology
    java: Any
    """The `jmsbridge.streams.Program`."""
    planner: Any
    """The `jmsbridge.streams.Planner` that made it."""
    dead_letters: str
    """Topic of records that cannot be processed."""
    versions: Mapping[str, int]
    """Version of each subject of the schema registry whose latest one was to give the fields of a source."""

    def key_kind(self, node: str) -> str:
        """Kind of the keys of a node's records."""
        kind: str = self.planner.keyKind(node)
        return kind

    def fields(self, node: str) -> str:
        """Fields of a node's records as text of Spark SQL."""
        text: str = self.planner.fields(node)
        return text


def plan(
    topology: Topology,
    spark: SparkSession,
    *,
    on_failure: str = "dead-letter",
    registry: Any = None,
    function_timeout_seconds: float | None = None,
    pinned: Mapping[str, int] = MappingProxyType({}),
) -> Program:
    """Plans a topology; starts nothing.

    Args:
        topology: the topology, which has a name.
        spark: the session, whose JVM has the project's jar.
        on_failure: what happens with a record that cannot be read or computed: `dead-letter`, `skip` or `stop`.
        registry: the `jmsbridge.serdes.SchemaRegistry`; None: there is none.
        function_timeout_seconds: time that one call of a Python function may take; None: any.
        pinned: versions of subjects that give the fields of sources in place of the latest ones, as long as values of
            the latest can be read by them.

    Raises:
        SetupError: as `check_classes`.
        ValueError: there is no such `on_failure`.
        TopologyError: with a fault for the first node that cannot be planned: unknown fields, types that do not fit,
            aggregates that cannot be computed record by record, sides of a join that do not match; or the schema
            registry refuses a schema or does not answer.
    """
    if not topology.name:
        raise TopologyError(["the topology has no name: give StreamsBuilder one, which names its state and its group"])
    check_classes(spark)
    jvm: Any = spark._jvm
    dead_letters = f"{topology.name}-dead-letters"
    limits = [] if function_timeout_seconds is None else [str(function_timeout_seconds)]
    command = [sys.executable, "-m", "engine.topologies.library.python_worker", *limits]
    path = os.pathsep.join([str(Path.cwd()), *filter(None, sys.path)])
    about = topology.name, on_failure, dead_letters
    try:
        java = jvm.jmsbridge.streams.Planner(spark._jsparkSession, *about, command, path)
    except JVM_ERRORS as error:
        raise ValueError(reason_of(error)) from error
    planner = _Planner(topology, spark, java, registry, pinned)
    with _without_logs():
        for node in topology.nodes:
            try:
                planner.add(node)
            except (*JVM_ERRORS, ValueError) as error:
                raise TopologyError([f"'{node.name}': {reason_of(error)}"]) from error
            except Exception as error:
                # A function of the topology raises it, such as a condition that uses a name which is not there.
                if (frame := users_frame(error)) is None:
                    raise
                where = f"{frame.filename}:{frame.lineno}: {type(error).__name__}"
                raise TopologyError([f"'{node.name}': {where}: {reason_of(error)}"]) from error
            if isinstance(node, SHOWN):
                planner.show(node)
            if isinstance(node, Aggregate | KeyedProcess) and node.follows_clock:
                java.program().followClock(node.name)
    return Program(topology, java.program(), java, dead_letters, planner.versions)


def check_classes(spark: SparkSession) -> None:
    """Raises SetupError if a session lacks the project's Java classes, or those of other jars that they need."""
    try:
        # This class is loaded with what it needs; that of a package is one that is not found.
        loaded = spark._jvm.jmsbridge.streams.TestRun  # type: ignore[union-attr]
    except (Py4JError, AttributeError):
        loaded = None
    if not isinstance(loaded, JavaClass):
        folder = jars() / "spark"
        msg = (
            f"the Spark session lacks Java classes of topologies: leave `spark` out, and TopologyTestDriver opens a "
            f"session that has them; or start yours with all jars of {folder}: "
            f'.config("spark.jars", ",".join(map(str, Path("{folder}").glob("*.jar"))))'
        )
        raise SetupError(msg)


@contextmanager
def _without_logs() -> Iterator[None]:
    """Keeps PySpark from printing the errors that it raises, with their stacks, before the message to the user."""
    # Made by PySpark's class, whose methods it calls with arguments that a plain logger does not take.
    loggers = [PySparkLogger.getLogger(f"{kind}QueryContextLogger") for kind in ("SQL", "DataFrame")]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, was in zip(loggers, before, strict=True):
            logger.disabled = was


class _Planner:
    def __init__(
        self, topology: Topology, spark: SparkSession, java: Any, registry: Any, pinned: Mapping[str, int]
    ) -> None:
        self.versions: dict[str, int] = {}
        self._pinned = pinned
        self._topology = topology
        self._registry = registry
        self._java = java
        self._functions = JvmFunctions(spark)
        jvm: Any = spark._jvm
        self._schema = jvm.jmsbridge.streams.Planner.arrowSchema
        self._array_list = jvm.java.util.ArrayList
        self._schema_serde = jvm.jmsbridge.serdes.SchemaSerde

    @singledispatchmethod
    def add(self, node: Node) -> None:
        """Makes the node of the program."""
        msg = f"{type(node).__name__} is a step of the router alone; use map_values, select_key or filter"
        raise ValueError(msg)

    @add.register
    def _(self, node: SourceNode) -> None:
        about = node.name, node.topic, self._key_reader(node), self._reader(node.topic, node.value)
        if isinstance(node, GlobalTableNode):
            self._java.globalTable(*about)
        else:
            self._java.source(*about, _or_never(node.max_ahead_ms))

    @add.register
    def _(self, node: Filter) -> None:
        condition = self._column(node.condition)
        self._java.filter(node.name, *node.parents, condition, node.is_negated, node.is_table)

    @add.register
    def _(self, node: Split) -> None:
        branches = self._topology.branches(node.name)
        asked = [self._column(each.condition) for each in branches if each.condition is not None]
        names = self._list(each.name for each in branches)
        self._java.split(node.name, *node.parents, names, self._list(asked))

    @add.register
    def _(self, node: Branch) -> None:
        pass  # made with its split

    @add.register
    def _(self, node: MapValues) -> None:
        fields = [column_of(each, self._row()).alias(name)._jc for name, each in node.fields.items()]
        self._java.mapValues(node.name, *node.parents, self._list(fields), node.is_table)

    @add.register
    def _(self, node: FlatMap) -> None:
        self._java.flatMap(node.name, *node.parents, self._column(node.array))

    @add.register
    def _(self, node: SelectKey) -> None:
        self._java.selectKey(node.name, *node.parents, self._column(node.key), node.like)

    @add.register
    def _(self, node: WithHeaders) -> None:
        made = {name: self._column(each) for name, each in node.headers.items() if each is not None}
        names = self._list(node.headers), self._list(made)
        self._java.withHeaders(node.name, *node.parents, *names, self._list(made.values()))

    @add.register
    def _(self, node: Merge) -> None:
        self._java.merge(node.name, self._list(node.parents))

    @add.register
    def _(self, node: Repartition) -> None:
        (topic,) = self._topology.internal_topics(node)
        if aggregate := self._topology.aggregate_behind(node):
            about = aggregate.name, self._aggregates(aggregate.columns), self._grid(aggregate.windows)
            self._java.toAggregate(node.name, *node.parents, topic, *about, aggregate.is_combined)
            return
        self._java.repartition(node.name, *node.parents, topic, _keeps_null_keys(self._topology, node.name))

    @add.register
    def _(self, node: ToTable) -> None:
        if node.history_ms is not None:
            self._java.versionedTable(node.name, *node.parents, node.history_ms)
        else:
            self._java.toTable(node.name, *node.parents, _or_never(node.ttl_ms))

    @add.register
    def _(self, node: ToStream) -> None:
        self._java.toStream(node.name, *node.parents, node.keeps_removals)

    @add.register
    def _(self, node: Aggregate) -> None:
        java, about = self._java, (node.name, *node.parents, self._aggregates(node.columns))
        if node.windows is None and node.only_final:
            java.lastChanges(*about)
            return
        if node.windows is None:
            java.aggregate(*about, _or_never(node.ttl_ms))
            return
        closing = java.closing(node.windows.grace_ms, node.only_final, node.rejects_late)
        match node.windows:
            case TimeWindows() | CalendarWindows():
                java.hopping(*about, self._grid(node.windows), closing)
            case SlidingWindows(size_ms):
                java.sliding(*about, size_ms, closing)
            case SessionWindows(gap_ms):
                java.session(*about, gap_ms, closing)
        if node.until is not None:
            java.until(node.name, self._column(node.until))

    @add.register
    def _(self, node: GroupTable) -> None:
        group, columns = self._column(node.group), self._aggregates(node.columns)
        self._java.groupTotal(node.name, *node.parents, group, columns, *self._topology.internal_topics(node))

    @add.register
    def _(self, node: JoinTable | JoinGlobal) -> None:
        on = node.on if isinstance(node, JoinGlobal) else None
        column = None if on is None else self._column(on)
        self._java.joinTable(node.name, *node.parents, column, node.prefix, node.keeps_left)

    @add.register
    def _(self, node: JoinTables) -> None:
        self._java.joinTables(node.name, *node.parents, node.prefix, node.keeps_left, node.keeps_right)

    @add.register
    def _(self, node: JoinForeign) -> None:
        topics = self._topology.internal_topics(node)
        self._java.joinForeign(node.name, *node.parents, self._column(node.on), node.prefix, node.keeps_left, *topics)

    @add.register
    def _(self, node: JoinStreams) -> None:
        times = (node.before_ms, node.after_ms, node.grace_ms)
        about = node.prefix, *times, node.keeps_left, node.keeps_right, node.rejects_late
        self._java.joinStreams(node.name, *node.parents, *about)

    @add.register
    def _(self, node: Deduplicate) -> None:
        self._java.deduplicate(node.name, *node.parents, self._column(node.id), node.within_ms)

    @add.register
    def _(self, node: PythonColumn) -> None:
        fields = f"`{node.column}` {node.function.returns}"
        packed = PackedFunction(node.name, node.function.function, None, bytes(self._schema(fields)), None, False, {})
        self._java.pythonColumn(node.name, *node.parents, pickled(packed), fields)

    @add.register
    def _(self, node: DropField) -> None:
        (parent,) = node.parents
        self._java.firstFields(node.name, parent, len(self._java_fields(parent)) - 1)

    @add.register
    def _(self, node: Process) -> None:
        keyed = node if isinstance(node, KeyedProcess) else None
        state = None if keyed is None else keyed.state
        schemas = bytes(self._schema(node.fields)), None if state is None else bytes(self._schema(state))
        outputs = {name: bytes(self._schema(fields)) for name, fields in node.outputs.items()}
        timers = (None, None) if keyed is None else (keyed.on_timer, keyed.on_clock)
        ttl_ms = None if keyed is None else keyed.ttl_ms
        packed = PackedFunction(node.name, node.function, timers[0], *schemas, True, outputs, timers[1], ttl_ms)
        all_fields = self._list((node.fields, *node.outputs.values()))
        self._java.process(node.name, *node.parents, pickled(packed), all_fields, state, _or_never(ttl_ms))

    @add.register
    def _(self, node: ProcessOutput) -> None:
        (parent,) = node.parents
        process = self._topology.node(parent)
        assert isinstance(process, Process)
        self._java.processOutput(node.name, parent, list(process.outputs).index(node.output))

    @add.register
    def _(self, node: SinkNode) -> None:
        (parent,) = node.parents
        fields = tuple(self._java_fields(parent))
        serde = node.value or (ColumnSerde(SerdeKind.BYTES) if fields == ("value",) else ColumnSerde(SerdeKind.JSON))
        topic = node.topic if isinstance(node.topic, str) else None
        chosen = None if topic is not None else self._column(node.topic)
        value = self._schemas(serde) if isinstance(serde, SchemaSerde) else serde.writer(fields)._jc
        is_json = isinstance(serde, ColumnSerde) and serde.kind is SerdeKind.JSON
        sink = self._java.jsonSink if is_json else self._java.sink
        sink(node.name, parent, topic, chosen, self._key_writer(node.key, parent, topic), value)

    def show(self, node: Node) -> None:
        """Makes the state of a node readable: its fields and, unless one of them has this name, its key."""
        fields = dict.fromkeys(("key", *self._java.shownNames(node.name)))
        self._java.show(node.name, ColumnSerde(SerdeKind.JSON).writer(tuple(fields))._jc)

    def _key_reader(self, node: SourceNode) -> Any:
        if isinstance(node.key, KeyKind):
            return self._java.keyReader(node.key.upper())
        return self._java.keyReader(node.topic, self._reader(node.topic, node.key, role="KEY"))

    def _key_writer(self, given: Key | None, parent: str, topic: str | None) -> Any:
        form = None if given is None else key_form(given)
        if isinstance(form, SchemaSerde):
            return self._java.keyWriter(parent, topic, self._schemas(form, role="KEY"))
        if isinstance(form, ColumnSerde):
            kind = self._java.keyKind(parent)
            if not kind.startswith("struct<"):
                msg = f"keys of the kind {kind.lower()} have no fields for JSON: choose a struct with select_key"
                raise ValueError(msg)
            form = KeyKind.TEXT
        return self._java.keyWriter(parent, None if form is None else form.upper())

    def _reader(self, topic: str, serde: Serde, role: str = "VALUE") -> Any:
        if isinstance(serde, SchemaSerde):
            made = self._schemas(serde, role)
            subject = made.subject(topic)
            schemas = made.reader(topic, self._pinned.get(subject, 0))
            if version := schemas.version():
                self.versions[subject] = version
            return schemas
        reader = self._java.jsonReader if serde.kind is SerdeKind.JSON else self._java.reader
        return reader(serde.reader()._jc)

    def _schemas(self, serde: SchemaSerde, role: str = "VALUE") -> Any:
        return java_serde(serde, self._schema_serde, self._registry, role)

    def _java_fields(self, node: str) -> list[str]:
        return list(self._java.fieldNames(node))

    def _aggregates(self, columns: Mapping[str, str | Column]) -> Any:
        made = (column_of(each, self._row()) for each in columns.values())
        return self._list(each.alias(name)._jc for name, each in zip(columns, made, strict=True))

    def _grid(self, windows: Windows | None) -> Any:
        match windows:
            case TimeWindows(size_ms, advance_ms):
                return self._java.multiples(size_ms, advance_ms)
            case CalendarWindows(count, unit, zone, offset_ms):
                return self._java.calendar(f"{unit.upper()}S", count, zone, offset_ms)
            case _:
                return None

    def _column(self, expression: Expression) -> Any:
        return column_of(expression, self._row())._jc

    def _row(self) -> Row:
        headers = HeaderView(F.col("headers"), self._functions)
        about = {name: F.col(name) for name in ("key", "value", "headers", "topic", "partition", "offset", "timestamp")}
        return Row(**about, header_view=headers)

    def _list(self, items: Iterable[Any]) -> Any:
        made = self._array_list()
        for item in items:
            made.add(item)
        return made


def _or_never(milliseconds: int | None) -> int:
    """The time as the JVM gets it, for which a number below 0 stands for none."""
    return -1 if milliseconds is None else milliseconds


def _keeps_null_keys(topology: Topology, name: str) -> bool:
    """True if a join behind a node has results for records without a key, and gets them without another topic."""
    for node in topology.nodes:
        if name not in node.parents:
            continue
        match node:
            case JoinTable():
                keeps = node.keeps_left and name == node.parents[0]
            case JoinStreams():
                keeps = (node.keeps_left, node.keeps_right)[node.parents.index(name)]
            case Filter() | Split() | Branch() | MapValues() | FlatMap() | Merge() | WithHeaders():
                keeps = _keeps_null_keys(topology, node.name)
            case PythonColumn() | DropField():
                keeps = _keeps_null_keys(topology, node.name)
            case _:
                keeps = False
        if keeps:
            return True
    return False


def java_serde(serde: SchemaSerde, make: Any, registry: Any, role: str = "VALUE") -> Any:
    """The `jmsbridge.serdes.SchemaSerde` of a serde, made by its class; ValueError if it lacks its registry.

    `role` is `KEY` or `VALUE`.
    """
    if serde.uses_registry and registry is None:
        msg = f"{serde} needs a schema registry: set schema.registry.url, or give a schema and registry=False"
        raise ValueError(msg)
    used = registry if serde.uses_registry else None
    about = serde.schema, serde.subject, serde.version, serde.registers
    return make(role, str(serde.format), serde.message, used, *about)


def is_outage(error: BaseException | None) -> bool:
    """True if the schema registry could not be reached."""
    java = "jmsbridge.serdes.RegistryOutageException"
    return isinstance(error, Py4JJavaError) and error.java_exception.getClass().getName() == java


def reason_of(error: Exception) -> str:
    """The text of an error, without Java's classes and Spark's plan."""
    if isinstance(error, ExpressionError):
        return str(error)
    if isinstance(error, Py4JJavaError):
        error = Exception(error.java_exception.getMessage())
    return next((line for line in str(error).splitlines() if line), "it says nothing")
