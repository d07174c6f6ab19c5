"""Nodes of a topology: frozen values, each with one step of processing and the names of its parents.

`dsl` makes them, `describe` prints them, `program` turns them into a program. The router has further ones of its own
(`engine.router.plan.nodes`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from pyspark.sql import Column

from engine.topologies.library.expressions import parsed
from engine.topologies.library.python_functions import ProcessFunction, PythonFunction, TimerFunction
from engine.topologies.library.row import Row
from engine.topologies.library.serdes import ColumnSerde, Key, KeyForm, KeyKind, Serde, SerdeKind, check_serde
from engine.topologies.library.windows import Windows

__all__ = [
    "SHOWN",
    "STATEFUL",
    "Aggregate",
    "Branch",
    "Deduplicate",
    "DropField",
    "Expression",
    "Filter",
    "FlatMap",
    "GlobalTableNode",
    "GroupTable",
    "Join",
    "JoinForeign",
    "JoinGlobal",
    "JoinStreams",
    "JoinTable",
    "JoinTables",
    "KeyedProcess",
    "MapValues",
    "Merge",
    "Node",
    "Process",
    "ProcessOutput",
    "PythonColumn",
    "Repartition",
    "RowFunction",
    "SelectKey",
    "SinkNode",
    "SourceNode",
    "Split",
    "ToStream",
    "ToTable",
    "WithHeaders",
    "branches",
    "can_expire",
    "can_keep_history",
    "children",
    "column_of",
    "output_fault",
    "stream_join",
]


RowFunction: TypeAlias = Callable[[Row], Column]
"""A function from a row to a Column: a condition (boolean; NULL counts as false), a key, a topic or a text."""
Expression: TypeAlias = str | Column | RowFunction | PythonFunction
"""Text of Spark SQL over the fields of a record, a Column, a function from a row to a Column, or `python(…)`."""


def column_of(expression: Expression, row: Row) -> Column:
    """The expression as a Column of the row; ValueError for another value, or a misplaced Python function."""
    if isinstance(expression, PythonFunction):
        msg = "a Python function is not allowed here: compute a field with it first, by map_values(f=python(…))"
        raise ValueError(msg)
    if isinstance(expression, str):
        return parsed(expression)
    column = expression(row) if callable(expression) and not isinstance(expression, Column) else expression
    if not isinstance(column, Column):
        origin = "a function returns" if callable(expression) else "this is"
        msg = f"{origin} {column!r}, and not a Column: write text of Spark SQL, or F.lit({column!r}) for a constant"
        raise ValueError(msg)
    return column


@dataclass(frozen=True, slots=True)
class Node:
    """A step in a topology; `parents` are the names of the nodes whose records it consumes."""

    is_end: ClassVar[bool] = False
    """True for nodes at which records end, so that no node consumes them."""

    name: str
    parents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceNode(Node):
    """Reads the records of one topic."""

    topic: str = ""
    value: Serde = field(default=ColumnSerde(SerdeKind.BYTES), kw_only=True)
    key: KeyForm = field(default=KeyKind.TEXT, kw_only=True)
    max_ahead_ms: int | None = field(default=None, kw_only=True)
    """Time by which a record may be later than the clock; one that is later still fails. None: any."""

    def __post_init__(self) -> None:
        """Raises TypeError for values in a form that is not a serde."""
        check_serde(self.value)


@dataclass(frozen=True, slots=True)
class GlobalTableNode(SourceNode):
    """Keeps the latest value of each key of all partitions of a topic, in all tasks."""


@dataclass(frozen=True, slots=True, eq=False)
class Filter(Node):
    """Passes the records for which the condition is true; the others end here. If negated, the other way round."""

    condition: Expression = field(kw_only=True)
    is_negated: bool = field(default=False, kw_only=True)
    is_table: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, slots=True, eq=False)
class MapValues(Node):
    """Passes each record with other fields."""

    fields: Mapping[str, Expression] = field(kw_only=True)
    is_table: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, slots=True, eq=False)
class FlatMap(Node):
    """Passes a record for each element of an array; the fields of a struct are the record's, others are `value`."""

    array: Expression = field(kw_only=True)


@dataclass(frozen=True, slots=True, eq=False)
class SelectKey(Node):
    """Passes each record with another key."""

    key: Expression = field(kw_only=True)
    like: str | None = field(default=None, kw_only=True)
    """Name of a node whose kind of key it has; None: a struct or bytes as they are, and text for everything else."""


@dataclass(frozen=True, slots=True, eq=False)
class WithHeaders(Node):
    """Passes each record with other headers."""

    headers: Mapping[str, Expression | None] = field(kw_only=True)
    """Value of each header that is set, by its name; None: the header is removed."""


@dataclass(frozen=True, slots=True)
class Split(Node):
    """Passes each record to the first of its branches whose condition accepts it; other records end here."""


@dataclass(frozen=True, slots=True, eq=False)
class Branch(Node):
    """Branch of a split."""

    condition: Expression | None = field(kw_only=True)
    """Condition of the records that the branch takes; None for the default branch, which takes all others."""


@dataclass(frozen=True, slots=True)
class Merge(Node):
    """Passes the records of several streams as one."""


@dataclass(frozen=True, slots=True)
class Repartition(Node):
    """Passes the records through an internal topic, behind which all records of a key are in one partition."""


@dataclass(frozen=True, slots=True)
class ToTable(Node):
    """Keeps the latest value of each key."""

    ttl_ms: int | None = field(default=None, kw_only=True)
    """Stream time after its last update at which a row is removed; None: it stays."""
    history_ms: int | None = field(default=None, kw_only=True)
    """Stream time for which former values are kept, for joins as of a time; None: there are none."""


@dataclass(frozen=True, slots=True)
class ToStream(Node):
    """Passes the changes of a table as records."""

    keeps_removals: bool = field(default=True, kw_only=True)
    """True if a removed row is a record without a value; not for rows of windows, which the key alone does not tell."""


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate(Node):
    """Keeps the aggregates of each key or, with windows, of each key and window."""

    columns: Mapping[str, str | Column] = field(kw_only=True)
    windows: Windows | None = field(default=None, kw_only=True)
    only_final: bool = field(default=False, kw_only=True)
    """True if a window's result is forwarded once, when it is closed; without windows, a key's once in a batch."""
    until: Expression | None = field(default=None, kw_only=True)
    """Condition on a window's result at which it is forwarded once before the window is closed; None: never."""
    ttl_ms: int | None = field(default=None, kw_only=True)
    """Stream time after the last record of a key at which its aggregate, which has no windows, is removed."""
    rejects_late: bool = field(default=False, kw_only=True)
    """True if a record that is late for all its windows is one that fails."""
    follows_clock: bool = field(default=False, kw_only=True)
    """True if the clock closes windows, too."""

    @property
    def is_combined(self) -> bool:
        """True if only results of many records count, so that these can be aggregated before they come."""
        return self.only_final and self.until is None and not self.rejects_late


@dataclass(frozen=True, slots=True, eq=False)
class GroupTable(Node):
    """Keeps the aggregates of a table by groups other than its key, through an internal topic."""

    group: Expression = field(kw_only=True)
    columns: Mapping[str, str | Column] = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class Join(Node):
    """Joins the records of two parents with equal keys, of streams or tables."""

    keeps_left: bool = field(default=False, kw_only=True)
    """True if a left record without a partner is forwarded as well."""
    keeps_right: bool = field(default=False, kw_only=True)
    prefix: str = field(default="", kw_only=True)
    """Text before the names of the right side's fields."""


@dataclass(frozen=True, slots=True)
class JoinTable(Join):
    """Joins each record of a stream, the first parent, with the row of a table, the second, present or of its time."""


@dataclass(frozen=True, slots=True, eq=False)
class JoinGlobal(Join):
    """Joins each record of a stream, the first parent, with the present value of a global table, the second."""

    on: Expression | None = field(default=None, kw_only=True)
    """Key in the table; None: the record's key."""


@dataclass(frozen=True, slots=True)
class JoinTables(Join):
    """Keeps the joined values of two tables."""


@dataclass(frozen=True, slots=True, eq=False)
class JoinForeign(Join):
    """Joins each row of a table with the row of another table that an expression names, through internal topics."""

    on: Expression = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class JoinStreams(Join):
    """Joins the records of two streams whose times are near."""

    before_ms: int = field(kw_only=True)
    """Time by which the right record may be earlier than the left one."""
    after_ms: int = field(kw_only=True)
    grace_ms: int = field(kw_only=True)
    rejects_late: bool = field(default=False, kw_only=True)
    """True if a late record is one that fails."""


def stream_join(
    name: str,
    parents: tuple[str, str],
    times: tuple[int, int, int],
    keeps: tuple[bool, bool],
    prefix: str,
    *,
    rejects_late: bool,
) -> JoinStreams:
    """The join of two streams; `times` are its `before_ms`, `after_ms` and `grace_ms`, `keeps` its two sides."""
    before_ms, after_ms, grace_ms = times
    return JoinStreams(
        name,
        parents,
        keeps_left=keeps[0],
        keeps_right=keeps[1],
        prefix=prefix,
        before_ms=before_ms,
        after_ms=after_ms,
        grace_ms=grace_ms,
        rejects_late=rejects_late,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Deduplicate(Node):
    """Passes the first of the records with one id within a time."""

    id: Expression = field(kw_only=True)
    within_ms: int = field(kw_only=True)


@dataclass(frozen=True, slots=True, eq=False)
class PythonColumn(Node):
    """Passes each record with one more field, which a Python function computes."""

    column: str = field(kw_only=True)
    """Name of the field."""
    function: PythonFunction = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class DropField(Node):
    """Passes each record without its last field."""


@dataclass(frozen=True, slots=True, eq=False)
class Process(Node):
    """Passes the results of a Python function for each record."""

    function: ProcessFunction = field(kw_only=True)
    fields: str = field(kw_only=True)
    """Fields of its results as text of Spark SQL."""
    outputs: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    """Fields of the results that it emits to further outputs, by the names of these."""


@dataclass(frozen=True, slots=True, eq=False)
class KeyedProcess(Process):
    """Passes the results of a Python function for each record, with a state and timers for each key."""

    state: str = field(kw_only=True)
    """Fields of the state as text of Spark SQL."""
    on_timer: TimerFunction | None = field(default=None, kw_only=True)
    on_clock: TimerFunction | None = field(default=None, kw_only=True)
    ttl_ms: int | None = field(default=None, kw_only=True)
    """Stream time after the latest record of a key at which its state is removed."""

    @property
    def follows_clock(self) -> bool:
        """True if it has timers of the clock."""
        return self.on_clock is not None


@dataclass(frozen=True, slots=True)
class ProcessOutput(Node):
    """Passes the results that the function of a process emits to an output with a name."""

    output: str = field(kw_only=True)


@dataclass(frozen=True, slots=True, eq=False)
class SinkNode(Node):
    """Publishes each record to its topic, constant or chosen; a record whose topic is NULL is not published."""

    is_end: ClassVar[bool] = True

    topic: str | Column | RowFunction = field(kw_only=True)
    choices: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    """Topics that a function may give, each under the label that drawings show beside it; empty: any topic."""
    value: Serde | None = field(default=None, kw_only=True)
    """Form of the values; None: bytes or text if that is all they have, else JSON."""
    key: Key | None = field(default=None, kw_only=True)
    """Form of the keys; None: as they are, structs as JSON."""
    is_compacted: bool = field(default=False, kw_only=True)
    """True if Kafka shall keep the latest record of each key alone, in a topic that is created if it is missing."""

    def __post_init__(self) -> None:
        """Raises TypeError for values in a form that is not a serde."""
        check_serde(self.value)


SHOWN = (ToTable, Aggregate, GroupTable, JoinForeign, KeyedProcess)
"""Nodes whose state is rows that can be asked for."""
STATEFUL = (*SHOWN, JoinStreams, Deduplicate)
"""Nodes that keep state."""


def can_expire(node: Node) -> bool:
    """True for a node from which rows can be removed after a time."""
    return (isinstance(node, Aggregate) and node.windows is None and not node.only_final) or (
        isinstance(node, ToTable) and node.history_ms is None
    )


def can_suppress(node: Node, *, is_plain: bool) -> bool:
    """True for a node that can forward final results alone; plain: with neither early results nor the clock."""
    return isinstance(node, Aggregate) and node.ttl_ms is None and (is_plain or node.windows is not None)


def can_keep_history(node: Node) -> bool:
    """True for a node that can keep the former values of rows."""
    return isinstance(node, ToTable) and node.ttl_ms is None


def children(nodes: Iterable[Node]) -> Mapping[str, Sequence[Node]]:
    """The nodes that consume the records of each node, by its name; without those whose records no node consumes."""
    consumers: dict[str, list[Node]] = {}
    for node in nodes:
        for parent in dict.fromkeys(node.parents):
            consumers.setdefault(parent, []).append(node)
    return consumers


def branches(nodes: Sequence[Node]) -> Mapping[str, Sequence[str]]:
    """Names of the branches of each split, by its name, in the order in which they are tried."""
    names: dict[str, list[str]] = {node.name: [] for node in nodes if isinstance(node, Split)}
    for node in nodes:
        if isinstance(node, Branch):
            names[node.parents[0]].append(node.name)
    return names


def output_fault(nodes: Iterable[Node], process: str, output: str) -> str | None:
    """Fault if the node `process` does not declare an output; None: it does."""
    outputs = next((node.outputs for node in nodes if node.name == process and isinstance(node, Process)), {})
    if output in outputs:
        return None
    known = f"has {', '.join(outputs)}" if outputs else "declares none: process(…, outputs={'alarms': 'n int'})"
    return f"there is no output {output!r}; it {known}"
