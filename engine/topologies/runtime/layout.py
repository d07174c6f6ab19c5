"""Layout of a topology: the parts that it is cut into, the partitions of its topics, and digests of its state.

A part is a set of nodes that are joined without an internal topic between them. A task has all records of a key in a
part only if the topics of the part are partitioned alike.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Column

from engine.topologies.library.nodes import (
    STATEFUL,
    Aggregate,
    Deduplicate,
    GlobalTableNode,
    GroupTable,
    Join,
    JoinForeign,
    JoinGlobal,
    JoinStreams,
    JoinTable,
    JoinTables,
    KeyedProcess,
    Node,
    Process,
    PythonColumn,
    SinkNode,
    SourceNode,
    ToTable,
)
from engine.topologies.library.serdes import KeyKind
from engine.topologies.library.topology import TopologyError
from engine.topologies.library.windows import CalendarWindows, SessionWindows, SlidingWindows, TimeWindows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.topologies.library.program import Program
    from engine.topologies.library.topology import Topology

__all__ = ["SLICED", "Layout", "ReadOrder", "fingerprints", "internal_formats", "internal_inputs", "lay_out"]

SLICED = "/slices"
"""End of the fingerprint of windows that overlap, which are kept as slices; earlier releases kept each by itself."""

_PLAIN_KEYS = {kind.upper() for kind in KeyKind}


_LEAST_SLACK_MS, _SLACK_WITHOUT_LATE_MS = 1_000, 60_000
"""Milliseconds by which writers of an internal topic may be apart, at least, and for nodes to which no record is late:
each wait costs milliseconds, so records that are a second apart would come at some hundred in a second."""


@dataclass(frozen=True, slots=True)
class ReadOrder:
    """Needs of the nodes that depend on the order of times and are behind internal topics, as Java's `ReadOrder`."""

    feeders: tuple[str, ...]
    """Topics whose records are written to internal topics that such nodes read."""
    followers: tuple[str, ...]
    """Topics, not internal ones, that such nodes read beside internal ones."""
    bounds: tuple[tuple[int, int, int], ...]
    """Milliseconds for each node: step and phase of the times at which it closes windows, or 0; slack after them."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Partitions of a topology's topics, and whether the order between topics matters."""

    partitions: Mapping[str, int]
    """Number of partitions of each topic that is read, internal topics included."""
    internal: Mapping[str, int]
    """Partitions of the internal topics alone."""
    compacted: Mapping[str, int]
    """Number of partitions for each compacted topic that is written, if it has to be created."""
    mixes_inputs: tuple[str, ...]
    """Nodes with state that get records of several topics: a second run could meet these in another order."""
    python: tuple[str, ...]
    """Nodes that call Python functions, which get many records at once."""
    clocked: tuple[str, ...]
    """Nodes that follow the clock."""
    order: ReadOrder
    """Requirements of the nodes behind internal topics on the order in which topics are read."""
    readers: Mapping[str, str]
    """Name of the node that reads each topic, internal topics and those of global tables included."""
    counted: Mapping[str, tuple[str, ...]]
    """Topics that reach each join, and each node with state, directly: records of a key have to come where the records
    that they are joined with, or the state of the key, are."""
    joins: frozenset[str]
    """Nodes that join topics."""

    @property
    def shares(self) -> int:
        """Number of tasks."""
        return max(self.partitions.values())


def lay_out(topology: Topology, partitions: Mapping[str, int], kept: Mapping[str, int] | None = None) -> Layout:
    """The layout of a topology whose topics have these numbers of partitions.

    Args:
        topology: the topology.
        partitions: number of partitions of each topic that it reads, internal topics excepted.
        kept: numbers of the last run, with which its internal topics go on.

    Raises:
        TopologyError: topics that are joined have different numbers of partitions.
    """
    inputs = _inputs(topology)
    counts, before = dict(partitions), kept or {}
    # A topic before the one that depends on it: nodes are in the order of flow.
    for node in topology.nodes:
        topics = topology.internal_topics(node)
        if isinstance(node, JoinForeign):
            left, right = (inputs[parent][0] for parent in node.parents)
            ask, answer = topics
            counts[ask], counts[answer] = before.get(ask, counts[right]), before.get(answer, counts[left])
        elif topics:
            (topic,) = topics
            upstream = [counts[each] for each in inputs[node.parents[0]]]
            partners = [
                counts[each]
                for join in topology.nodes
                if isinstance(join, Join) and topic in inputs[join.name]
                for each in inputs[join.name]
                if each in partitions
            ]
            counts[topic] = before.get(topic, partners[0] if partners else max(upstream))
    faults = [
        f"'{node.name}': it joins topics with different numbers of partitions ({_numbers(joined)}): "
        "pass one side through repartition(), or give the topics the same number"
        for node in topology.nodes
        if isinstance(node, Join)
        and len(set((joined := {each: counts[each] for each in inputs[node.name]}).values())) > 1
    ]
    if faults:
        raise TopologyError(faults)
    mixing = tuple(
        node.name
        for node in topology.nodes
        if isinstance(node, JoinForeign) or (isinstance(node, STATEFUL) and len(inputs[node.name]) > 1)
    )
    joins = [node.name for node in topology.nodes if _is_join(node)]
    internal = {topic: count for topic, count in counts.items() if topic not in partitions}
    compacted = {
        node.topic: max(counts[each] for each in inputs[node.name])
        for node in topology.nodes
        if isinstance(node, SinkNode) and node.is_compacted and isinstance(node.topic, str)
    }
    python = tuple(node.name for node in topology.nodes if isinstance(node, Process | PythonColumn))
    clocked = tuple(
        node.name for node in topology.nodes if isinstance(node, Aggregate | KeyedProcess) and node.follows_clock
    )
    mixes_inputs = tuple(dict.fromkeys((*mixing, *joins)))
    readers = {source.topic: source.name for source in topology.sources}
    readers |= {topic: node.name for node in topology.nodes for topic in topology.internal_topics(node)}
    order, counted = _order(topology, inputs), _counted(topology, inputs)
    return Layout(counts, internal, compacted, mixes_inputs, python, clocked, order, readers, counted, frozenset(joins))


def _order(topology: Topology, inputs: Mapping[str, tuple[str, ...]]) -> ReadOrder:
    written: dict[str, set[str]] = {}
    for node in topology.nodes:
        for topic in topology.internal_topics(node):
            written.setdefault(topic, set()).update(each for parent in node.parents for each in inputs[parent])
    bounds: dict[tuple[int, int, int], None] = {}
    feeders: set[str] = set()
    followers: set[str] = set()
    for node in topology.nodes:
        bound, internal = _bound(node), {topic for topic in inputs[node.name] if topic in written}
        if bound is not None and internal:
            bounds[bound] = None
            followers.update(topic for topic in inputs[node.name] if topic not in written)
            while internal:
                upstream = written.get(internal.pop(), set()) - feeders
                feeders |= upstream
                internal |= upstream
    return ReadOrder(tuple(sorted(feeders)), tuple(sorted(followers)), tuple(bounds))


def _bound(node: Node) -> tuple[int, int, int] | None:
    """Bound of a node on how far apart in time the writers of its internal topic may be; None: it has none."""
    match node:
        case Aggregate(windows=TimeWindows() as windows):
            # The window of a record with the time at which it closes has to be complete.
            return windows.advance_ms, windows.size_ms % windows.advance_ms, windows.grace_ms - 1
        case Aggregate(windows=CalendarWindows() | SessionWindows() | SlidingWindows() as windows):
            return 0, 0, max(windows.grace_ms, _LEAST_SLACK_MS)
        case JoinStreams():
            return 0, 0, max(node.grace_ms, _LEAST_SLACK_MS)
        case (
            Aggregate(ttl_ms=int() as kept_ms)
            | KeyedProcess(ttl_ms=int() as kept_ms)
            | ToTable(ttl_ms=int() as kept_ms)
            | ToTable(history_ms=int() as kept_ms)
        ):
            return 0, 0, min(max(kept_ms, _LEAST_SLACK_MS), _SLACK_WITHOUT_LATE_MS)
        case Deduplicate() | JoinTable() | JoinTables() | KeyedProcess() | ToTable():
            return 0, 0, _SLACK_WITHOUT_LATE_MS
        case _:
            return None


def fingerprints(program: Program) -> dict[str, str]:
    """Digest, for each node with state, of its fixed properties: its inputs' fields, keys, windows and results."""
    topology = program.topology
    digests = {}
    for node in topology.nodes:
        if isinstance(node, STATEFUL):
            about = [program.fields(parent) for parent in node.parents], program.fields(node.name), _settings(node)
            if isinstance(node, KeyedProcess):
                # What the function gets and returns is not in the state.
                about = [], "", [node.state, program.key_kind(node.name), *_lifetime(node)]
            kind = program.key_kind(node.name)
            # State that was kept before keys had types goes on.
            typed = [] if kind in _PLAIN_KEYS else [kind]
            digests[node.name] = _digest([type(node).__name__, *about, *typed]) + _form(node)
    return digests


def _form(node: Node) -> str:
    """Form in which the state of a node is kept, where it is another one than the first; else empty."""
    match node:
        case Aggregate(windows=SlidingWindows()):
            return SLICED
        case Aggregate(windows=TimeWindows(size_ms, advance_ms)) if advance_ms != size_ms:
            return SLICED
        case _:
            return ""


def _counted(topology: Topology, inputs: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """The topics that reach each join, and each node with state, directly."""
    return {
        node.name: tuple(dict.fromkeys(topic for each in (node.name, *node.parents) for topic in inputs[each]))
        for node in topology.nodes
        if isinstance(node, STATEFUL) or _is_join(node)
    }


def _is_join(node: Node) -> bool:
    """True if a node joins topics, which need equal numbers of partitions."""
    return isinstance(node, Join) and not isinstance(node, JoinGlobal)


def internal_formats(program: Program) -> dict[str, str]:
    """Digest for each internal topic of its records' fields and keys: it may hold some that were not read yet."""
    topology, formats = program.topology, {}
    for node in topology.nodes:
        if topics := topology.internal_topics(node):
            sides = [(program.fields(each), program.key_kind(each)) for each in node.parents]
            formats.update(dict.fromkeys(topics, _digest([type(node).__name__, sides, program.key_kind(node.name)])))
    return formats


def internal_inputs(topology: Topology) -> dict[str, list[str]]:
    """The internal topics whose records reach each node with state."""
    read = {source.topic for source in topology.sources}
    inputs = _inputs(topology)
    return {
        node.name: [topic for topic in inputs[node.name] if topic not in read]
        for node in topology.nodes
        if isinstance(node, STATEFUL)
    }


def _digest(about: list[object]) -> str:
    return hashlib.sha256(repr(about).encode()).hexdigest()[:16]


def _settings(node: Node) -> list[str]:
    match node:
        case Aggregate():
            columns = [f"{name}={_text(each)}" for name, each in node.columns.items()]
            # Without windows, the state is the same whichever changes are given.
            only_final = node.only_final and node.windows is not None
            return [*columns, str(node.windows), str(only_final), *_lifetime(node)]
        case ToTable(history_ms=int()):
            return ["history"]
        case ToTable():
            return _lifetime(node)
        case GroupTable():
            return [_text(node.group), *(f"{name}={_text(each)}" for name, each in node.columns.items())]
        case JoinForeign():
            return [_text(node.on)]
        case JoinStreams():
            return [f"before_ms={node.before_ms}", f"after_ms={node.after_ms}"]
        case Deduplicate():
            return [f"within_ms={node.within_ms}"]
        case _:
            return []


def _lifetime(node: Aggregate | KeyedProcess | ToTable) -> list[str]:
    return [] if node.ttl_ms is None else [f"ttl_ms={node.ttl_ms}"]


def _text(expression: object) -> str:
    if isinstance(expression, str | Column):
        return str(expression)
    code = getattr(expression, "__code__", None)
    return "function" if code is None else f"{code.co_code.hex()} {code.co_consts} {code.co_names}"


def _inputs(topology: Topology) -> dict[str, tuple[str, ...]]:
    """The topics whose records reach each node without another topic between them."""
    inputs: dict[str, tuple[str, ...]] = {}
    for node in topology.nodes:
        if isinstance(node, GlobalTableNode):
            # Every task has all of it, whatever its partitions.
            inputs[node.name] = ()
        elif isinstance(node, SourceNode):
            inputs[node.name] = (node.topic,)
        elif topics := topology.internal_topics(node):
            inputs[node.name] = topics[-1:]
        else:
            inputs[node.name] = tuple(dict.fromkeys(topic for parent in node.parents for topic in inputs[parent]))
    return inputs


def _numbers(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{topic}: {count}" for topic, count in counts.items())
