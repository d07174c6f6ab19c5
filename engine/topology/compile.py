"""A topology as one Spark query: the records of its sources in, what it publishes out.

Every record carries the number of the node it has reached, `place`. Each node, in the order of flow, moves the
records that are with its parents and changes them; a record that nobody takes further ended where it is, and a record
that a node dropped has that node's number made negative. Only a stream with several consumers needs copies of a
record (explode), so a topology without fan-out stays one chain of projections: generated code, no shuffle, no state,
allowed in real-time mode.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from engine.topology.dsl import Topology
from engine.topology.nodes import (
    Branch,
    ByBranch,
    Condition,
    Fail,
    Filter,
    Map,
    Merge,
    Node,
    SelectKey,
    Sink,
    Source,
    Split,
)
from engine.topology.row import Row
from routes.predicate import identifiers
from routes.predicate.columns import View, compile_predicate, extract
from routes.predicate.dispatch import first_match
from routes.predicate.nodes import Predicate

__all__ = ["Compiled", "compile_topology"]

_CARRIED = {
    "topic": "source_topic",
    "partition": "source_partition",
    "offset": "source_offset",
    "timestamp": "source_timestamp",
}


@dataclass(frozen=True, slots=True, eq=False)
class Compiled:
    """A compiled topology."""

    frame: DataFrame
    """`key`, `value`, `headers`, `topic` (NULL: not published), `place`, `source_topic`, `source_partition`,
    `source_offset`, `source_timestamp`, `source_key`, and what `branches` names."""
    places: Mapping[str, int]
    """Node name to number. `place` is this number for records that ended at the node, `-number - 1` for those it
    dropped."""
    branches: Mapping[str, Column]
    """Split name to the column with the index of the branch taken."""


def compile_topology(topology: Topology, frame: DataFrame, names: Sequence[str] = ()) -> Compiled:
    """Compiles a topology over a frame with the columns of Spark's Kafka source (with headers).

    `names` are JMS fields and properties that the topology's functions read through `Row.property`, so that each is
    taken out of the headers once; others are looked up where they are used. Nothing runs.
    """
    compiler = _Compiler(topology, frame, names)
    for node in topology.nodes:
        compiler.add(node)
    return compiler.compiled()


class _Compiler:
    def __init__(self, topology: Topology, frame: DataFrame, names: Sequence[str]) -> None:
        self._topology = topology
        self._numbers = {node.name: index for index, node in enumerate(topology.nodes)}
        self._edges: dict[tuple[str, str], int] = {}
        self._branches: dict[str, tuple[Column, tuple[str, ...]]] = {}
        self._names = frozenset(names).union(*(_identifiers(node) for node in topology.nodes))
        self._frame = frame.select(
            "key",
            "value",
            "headers",
            *(F.col(old).alias(new) for old, new in _CARRIED.items()),
            F.col("key").alias("source_key"),
            F.lit(None).cast("string").alias("topic"),
            self._start(F.col("topic")).alias("place"),
        )
        self._view: View | None = None

    def compiled(self) -> Compiled:
        columns = {split: column for split, (column, _) in self._branches.items()}
        return Compiled(self._frame, self._numbers, columns)

    def add(self, node: Node) -> None:
        match node:
            case Filter():
                self._move(node, F.when(self._holds(node.condition), self._number(node)).otherwise(self._dropped(node)))
            case Map():
                row = self._row()
                self._change(node, row, node.change(row))
                self._move(node, self._number(node))
            case SelectKey():
                row = self._row()
                key = row.property(node.key) if isinstance(node.key, str) else node.key(row)
                self._change(node, row, row.replace(key=key.cast("binary")))
                self._move(node, self._number(node))
            case Split():
                self._split(node)
            case Merge():
                self._move(node, self._number(node))
            case Sink():
                self._publish(node)
            case Fail():
                self._move(node, F.raise_error(node.message(self._row())).cast("int"))
            case Source() | Branch():
                pass
        self._fan_out(node)

    def _start(self, topic: Column) -> Column:
        first, *others = self._topology.sources
        place: Column = F.lit(self._numbers[first.name])
        for source in others:
            place = F.when(topic == source.topic, self._numbers[source.name]).otherwise(place)
        return place

    def _row(self) -> Row:
        source = {old: F.col(new) for old, new in _CARRIED.items()}
        return Row(
            **{name: F.col(name) for name in ("key", "value", "headers", "source_key")},
            **source,
            properties=self._properties(),
            branches=self._branches,
        )

    def _properties(self) -> View:
        if self._view is None:
            self._frame, self._view = extract(self._frame, sorted(self._names))
        return self._view

    def _holds(self, condition: Condition) -> Column:
        if isinstance(condition, Predicate):
            return F.coalesce(compile_predicate(condition, self._properties()), F.lit(False))
        return F.coalesce(condition(self._row()), F.lit(False))

    def _split(self, split: Split) -> None:
        branches = self._topology.branches(split.name)
        asked = [branch for branch in branches if branch.condition is not None]
        here = self._here(split)
        taken = self._first(asked)
        if len(asked) < len(branches):
            taken = F.coalesce(taken, F.lit(len(asked)))
        index = f"branch_{self._numbers[split.name]}"
        self._frame = self._frame.withColumn(index, F.when(here, taken))
        numbers = F.array(*(F.lit(self._numbers[branch.name]) for branch in branches))
        self._move(split, F.coalesce(F.get(numbers, F.col(index)), self._dropped(split)))
        self._branches[split.name] = (F.col(index), tuple(branch.name for branch in branches))

    def _first(self, branches: Sequence[Branch]) -> Column:
        """Index of the first branch that wants the record, NULL for none."""
        rules = [(b.condition, b.unless) for b in branches if isinstance(b.condition, Predicate)]
        if len(rules) == len(branches):
            return first_match(rules, self._properties())
        index: Column = F.lit(None).cast("int")
        for number, branch in reversed(list(enumerate(branches))):
            assert branch.condition is not None
            wanted = self._holds(branch.condition)
            if branch.unless is not None:
                wanted = wanted & ~self._holds(branch.unless)
            index = F.when(wanted, number).otherwise(index)
        return index

    def _publish(self, sink: Sink) -> None:
        row = self._row()
        if isinstance(sink.topic, str):
            topic: Column = F.lit(sink.topic)
        elif isinstance(sink.topic, ByBranch):
            topic = row.pick(sink.topic)
        else:
            topic = sink.topic(row)
        here = self._here(sink)
        self._frame = self._frame.withColumn("topic", F.when(here, topic).otherwise(F.col("topic")))
        reached = F.when(F.col("topic").isNotNull(), self._number(sink)).otherwise(self._dropped(sink))
        self._move(sink, self._number(sink) if isinstance(sink.topic, str) else reached)

    def _change(self, node: Node, before: Row, after: Row) -> None:
        here = self._here(node)
        changed = {
            name: F.when(here, getattr(after, name)).otherwise(F.col(name))
            for name in ("key", "value", "headers")
            if getattr(after, name) is not getattr(before, name)
        }
        self._frame = self._frame.withColumns(changed)
        if "headers" in changed:
            self._view = None

    def _move(self, node: Node, place: Column) -> None:
        self._frame = self._frame.withColumn("place", F.when(self._here(node), place).otherwise(F.col("place")))

    def _fan_out(self, node: Node) -> None:
        """Copies the records of a stream that several nodes take, one for each."""
        children = self._topology.children(node.name)
        if isinstance(node, Split) or len(children) < 2:
            return
        for child in children:
            self._edges[node.name, child.name] = len(self._numbers) + len(self._edges)
        copies = F.array(*(F.lit(self._edges[node.name, child.name]) for child in children))
        place = F.col("place")
        spread = F.explode(F.when(place == self._number(node), copies).otherwise(F.array(place)))
        others = [name for name in self._frame.columns if name != "place"]
        self._frame = self._frame.select(*others, spread.alias("place"))

    def _here(self, node: Node) -> Column:
        """Whether a record is with a parent of the node, and meant for it."""
        numbers = sorted(self._edges.get((name, node.name), self._numbers[name]) for name in node.parents)
        place = F.col("place")
        if len(numbers) == 1:
            return place == numbers[0]
        if numbers[-1] - numbers[0] == len(numbers) - 1:
            return place.between(numbers[0], numbers[-1])
        return place.isin(numbers)

    def _number(self, node: Node) -> Column:
        return F.lit(self._numbers[node.name])

    def _dropped(self, node: Node) -> Column:
        return F.lit(-self._numbers[node.name] - 1)


def _identifiers(node: Node) -> frozenset[str]:
    """The names that a node's predicates read."""
    match node:
        case Filter(condition=Predicate() as condition):
            return identifiers(condition)
        case Branch():
            predicates = (condition for condition in (node.condition, node.unless) if isinstance(condition, Predicate))
            return frozenset().union(*(identifiers(predicate) for predicate in predicates))
        case SelectKey(key=str() as key):
            return frozenset((key,))
    return frozenset()
