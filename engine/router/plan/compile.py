"""Compiler from a topology to one Spark query: records of the sources in, published records out.

Every record carries a number, its place, which tells the node that it has reached. Only splits and filters change the
place: each branch has a place of its own, and so have the records that a filter drops; all other nodes take the places
of their parents. A map gives its stream new columns beside the old ones; at the end the place decides which of them
are published. A topology therefore becomes a few projections, whatever the number of its nodes: generated code, no
shuffle, no state, allowed in real-time mode. Only a stream with several consumers, and a split into copies, need copies
of a record (explode).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from engine.record import ORIGIN, POSITION
from engine.router.plan.builder import Plan
from engine.router.plan.nodes import CopyCondition, CopySplit, Fail, Map, RecordCondition
from engine.router.plan.row import PlanRow, TakenBranch, interpreted
from engine.topologies.library.casts import BINARY, HEADERS, INT, STRING, cast
from engine.topologies.library.nodes import (
    Branch,
    Expression,
    Filter,
    Merge,
    Node,
    SelectKey,
    SinkNode,
    SourceNode,
    Split,
    children,
    column_of,
)
from engine.topologies.library.row import HeaderView, JvmFunctions
from engine.topologies.library.topology import TopologyError

__all__ = ["Compiled", "compile_topology"]

_PUBLISHED = {"key": BINARY, "value": BINARY, "headers": HEADERS, "trail": HEADERS}
_CONTENT = {**_PUBLISHED, "left": BINARY}
_KEEPS_VALUE, _KEEPS_HEADERS, _ADDS_ORIGIN = 1, 2, 4
"""Parts of the column `kept`, as `jmsbridge.kafka.RecordWriter` reads it."""
_SOURCE = ("source_key", "source_value", "source_headers")
_ORIGIN = ("topic", "partition", "offset", "timestamp")


@dataclass(frozen=True, slots=True, eq=False)
class Compiled:
    """Frame of a compiled topology, with Columns that tell the way of each of its records."""

    frame: DataFrame
    """`key`, `value`, `headers`, `topic` (NULL: not published), `copy` (number of the copy of the record, from 0), and
    `source_topic`, `source_partition`, `source_offset`, `source_timestamp` of the source record; further columns that
    the methods of this class use.

    For a sink that has the source record itself: `kept`, which parts of it are published (sum of 1, the value; 2, the
    headers; 4, origin and position added), `new_value` and `new_headers` (NULL if kept), and `trail`, headers to come
    behind them."""
    _places: dict[str, tuple[int, ...]]
    _dropped: dict[str, int]
    _taken: dict[str, TakenBranch]
    _functions: JvmFunctions

    @property
    def source_header_view(self) -> HeaderView:
        """View of the headers of the source record."""
        return HeaderView(F.col("source_headers"), self._functions)

    def ended_at(self, name: str) -> Column:
        """True if a record of `frame` went no further than the node; false if the topology has no such node."""
        return _one_of(F.col("place"), self._places.get(name, ()))

    def dropped_by(self, name: str) -> Column:
        """True if the filter of that name dropped the record, or no branch of the split of that name took it."""
        return _one_of(F.col("place"), (self._dropped[name],) if name in self._dropped else ())

    def branch(self, split: str) -> Column:
        """Index of the branch of a split that took a record; NULL if the record did not reach it or no branch did."""
        return self._taken[split].index if split in self._taken else cast(F.lit(None), INT)


def compile_topology(
    topology: Plan, frame: DataFrame, left_out: Callable[[DataFrame], DataFrame] | None = None
) -> Compiled:
    """Compiles a topology over a frame with the columns of Spark's Kafka source, headers included; runs no query.

    `left_out` removes copies of records from a frame with the columns `source_partition`, `source_offset` and `copy`.
    """
    compiler = _Compiler(topology, frame, left_out)
    for node in topology.nodes:
        compiler.add(node)
    return compiler.finish()


class _Compiler:
    def __init__(
        self, topology: Plan, frame: DataFrame, left_out: Callable[[DataFrame], DataFrame] | None = None
    ) -> None:
        self._topology = topology
        self._left_out = left_out
        self._children = children(topology.nodes)
        self._next_place = 0
        self._places: dict[str, tuple[int, ...]] = {}
        """Places of a stream's records, by its name. A stream with several consumers has more entries, one for each
        consumer, with `_edge` as key."""
        self._dropped: dict[str, int] = {}
        self._taken: dict[str, TakenBranch] = {}
        self._content: dict[str, tuple[str, ...]] = {}
        """Names of the columns with a stream's key, value, headers, trail and what is left of the value (empty: none),
        by its name."""
        self._frame = frame.select(
            *(F.col(name).alias(f"source_{name}") for name in ("key", "value", "headers", *_ORIGIN)),
            F.lit(0).alias("place_0"),
            F.lit(0).alias("copy"),
        )
        self._version = 0
        self._functions = JvmFunctions(frame.sparkSession)
        self._columns: dict[str, Column] = {}
        """Columns that rows consist of, by name: each takes several calls into the JVM to make."""
        self._moves: list[tuple[Column, Column]] = []
        """Pending changes of the place: pairs of condition and new place, of which the first true condition counts."""

    def add(self, node: Node) -> None:
        match node:
            case SourceNode():
                self._start(node)
            case Filter():
                dropped = self._dropped[node.name] = self._new_place()
                holds = self._holds(node.condition, node)
                self._moves.append((self._here(node) & ~holds, F.lit(dropped)))
                self._pass(node)
            case Map():
                row = self._apart(node) if node.apart else self._row(node)
                self._change(node, row, node.change(row), apart=node.apart)
            case SelectKey():
                row = self._row(node)
                self._change(node, row, row.replace(key=cast(column_of(node.key, row), BINARY)))
            case Split():
                self._split(node)
            case Merge():
                self._merge(node)
            case Fail():
                message = node.message(self._row(node))
                self._moves.append((self._here(node), cast(F.raise_error(message), INT)))
            case SinkNode():
                self._publish(node)
            case Branch():
                pass  # made with its split
            case _:
                kind = type(node).__name__
                raise TopologyError([f"'{node.name}': {kind} needs state or fields: run the topology by itself"])
        self._fan_out(node)

    def finish(self) -> Compiled:
        self._settle()
        columns = {name: cast(F.lit(None), kind) for name, kind in (*_PUBLISHED.items(), ("topic", STRING))}
        columns |= {"kept": F.lit(0), "new_value": columns["value"], "new_headers": columns["headers"]}
        for sink in (node for node in self._topology.nodes if isinstance(node, SinkNode)):
            here = self._here(sink)
            for name, column in self._published(sink).items():
                columns[name] = F.when(here, column).otherwise(columns[name])
        self._frame = self._frame.select(
            *(column.alias(name) for name, column in columns.items()),
            *(f"source_{name}" for name in (*_ORIGIN, "headers")),
            *(f"place_{version}" for version in range(self._version + 1)),
            F.col(self._place).alias("place"),
            "copy",
        )
        return Compiled(self._frame, self._places, self._dropped, self._taken, self._functions)

    @property
    def _place(self) -> str:
        return f"place_{self._version}"

    def _new_place(self) -> int:
        self._next_place += 1
        return self._next_place - 1

    def _start(self, source: SourceNode) -> None:
        place = self._new_place()
        self._places[source.name] = (place,)
        self._content[source.name] = (*_SOURCE, "", "")
        if place:
            self._moves.append((F.col("source_topic") == source.topic, F.lit(place)))

    def _pass(self, node: Node) -> None:
        self._places[node.name] = self._from(node)
        self._content[node.name] = self._content[node.parents[0]]

    def _from(self, node: Node) -> tuple[int, ...]:
        """The places of the records that reach a node."""
        return tuple(sorted({place for parent in node.parents for place in self._between(parent, node)}))

    def _between(self, parent: str, node: Node) -> tuple[int, ...]:
        """The places of the records that go from a parent to a node."""
        return self._places.get(_edge(parent, node), self._places[parent])

    def _here(self, node: Node) -> Column:
        return _one_of(self._column(self._place), self._from(node))

    def _settle(self) -> None:
        """Makes the pending moves a new place column, for the conditions of the nodes that follow."""
        if self._moves:
            place = reduce(lambda rest, move: F.when(*move).otherwise(rest), reversed(self._moves), F.col(self._place))
            self._version += 1
            self._frame = self._frame.withColumn(self._place, place)
            self._moves = []

    def _row(self, node: Node) -> PlanRow:
        """The row that a function of the node gets."""
        self._settle()
        return self._record(node)

    def _record(self, node: Node) -> PlanRow:
        """The row before pending moves are settled: for conditions that read no branches."""
        return self._row_of(self._content[node.parents[0]], *_SOURCE)

    def _apart(self, node: Node) -> PlanRow:
        """The row with copies of its content that other records do not have.

        Spark keeps the copies as columns, since functions use them several times.
        """
        self._settle()
        here, content = self._here(node), self._content[node.parents[0]]
        copies = {name: f"{name}_apart_{node.name}" for name in {*content, *_SOURCE} if name}
        self._frame = self._frame.withColumns({copy: F.when(here, F.col(name)) for name, copy in copies.items()})
        own = tuple(copies[name] if name else "" for name in content)
        return self._row_of(own, *(copies[name] for name in _SOURCE))

    def _row_of(self, content: Sequence[str], source_key: str, source_value: str, source_headers: str) -> PlanRow:
        key, value, headers, trail, left = content
        column = self._column
        return PlanRow(
            key=column(key),
            value=column(value),
            headers=column(headers),
            trail=column(trail) if trail else None,
            left=column(left) if left else None,
            header_view=HeaderView(column(headers), self._functions),
            **{name: column(f"source_{name}") for name in _ORIGIN},
            source_key=column(source_key),
            source_value=column(source_value),
            source_header_view=HeaderView(column(source_headers), self._functions),
            copy=column("copy"),
            branches=self._taken,
        )

    def _column(self, name: str) -> Column:
        if name not in self._columns:
            self._columns[name] = F.col(f"`{name}`")
        return self._columns[name]

    def _holds(self, condition: Expression, node: Node) -> Column:
        row = self._record(node) if isinstance(condition, RecordCondition) else self._row(node)
        return F.coalesce(column_of(condition, row), F.lit(False))

    def _change(self, node: Node, before: PlanRow, after: PlanRow, *, apart: bool = False) -> None:
        self._pass(node)
        here, columns, content = self._here(node), {}, list(self._content[node.name])
        for index, name in enumerate(_CONTENT):
            column = getattr(after, name)
            if column is not getattr(before, name):
                content[index] = f"{name}_{len(self._content)}"
                columns[content[index]] = F.when(here, interpreted(column) if apart else column)
        self._frame = self._frame.withColumns(columns)
        self._content[node.name] = tuple(content)

    def _split(self, split: Split) -> None:
        if isinstance(split, CopySplit):
            self._split_copies(split)
            return
        branches = self._topology.branches(split.name)
        asked = [branch for branch in branches if branch.condition is not None]
        # Consecutive places: a branch's place is its index plus the first place.
        self._pass(split)
        places = [self._new_place() for _ in branches]
        taken = self._first(asked, split) + places[0]
        otherwise = places[-1] if len(asked) < len(branches) else self._drop(split)
        self._moves.append((self._here(split), F.coalesce(taken, F.lit(otherwise))))
        self._settle()
        self._take(split, branches, places)

    def _split_copies(self, split: CopySplit) -> None:
        branches = self._topology.branches(split.name)
        asked = [branch.condition for branch in branches if isinstance(branch.condition, CopyCondition)]
        self._settle()
        self._pass(split)
        here = self._here(split)
        places = [self._new_place() for _ in branches]
        otherwise = places[-1] if len(asked) < len(branches) else self._drop(split)
        wanted = F.when(here, type(asked[0]).every(asked, self._record(split))).otherwise(F.array(F.lit(-1)))
        others = [name for name in self._frame.columns if name != "copy"]
        spread = self._frame.select(*others, F.posexplode(wanted).alias("copy", "branch"))
        if self._left_out is not None:
            spread = self._left_out(spread)
        number = F.col("branch")
        place = F.when(number >= 0, number + places[0]).when(here, otherwise).otherwise(F.col(self._place))
        self._version += 1
        self._frame = spread.withColumn(self._place, place).drop("branch")
        self._take(split, branches, places)

    def _drop(self, split: Split) -> int:
        """The place of the records that no branch of the split takes."""
        place = self._dropped[split.name] = self._new_place()
        return place

    def _take(self, split: Split, branches: Sequence[Branch], places: Sequence[int]) -> None:
        for branch, place in zip(branches, places, strict=True):
            self._places[branch.name] = (place,)
            self._content[branch.name] = self._content[split.name]
        self._taken[split.name] = TakenBranch(F.col(self._place), places[0], tuple(branch.name for branch in branches))

    def _first(self, branches: Sequence[Branch], split: Split) -> Column:
        """Index of the first branch whose condition accepts the record; NULL for none."""
        conditions: list[Any] = [branch.condition for branch in branches if branch.condition is not None]
        alike = [c for c in conditions if isinstance(c, RecordCondition) and type(c) is type(conditions[0])]
        if alike and len(alike) == len(conditions):
            return type(alike[0]).first(alike, self._record(split))
        index = cast(F.lit(None), INT)
        for number, condition in reversed(list(enumerate(conditions))):
            index = F.when(self._holds(condition, split), number).otherwise(index)
        return index

    def _merge(self, merge: Merge) -> None:
        self._places[merge.name] = self._from(merge)
        content = [self._content[parent] for parent in merge.parents]
        merged = list(content[0])
        for index, name in enumerate(_CONTENT):
            if len({columns[index] for columns in content}) > 1:
                self._settle()
                merged[index] = f"{name}_{len(self._content)}"
                ways = [
                    (self._places.get(_edge(p, merge), self._places[p]), c[index])
                    for p, c in zip(merge.parents, content, strict=True)
                ]
                # A stream without a trail has no column for it.
                place = self._column(self._place)
                first, *others = (F.when(_one_of(place, at), self._column(name)) for at, name in ways if name)
                self._frame = self._frame.withColumn(merged[index], F.coalesce(first, *others))
        self._content[merge.name] = tuple(merged)

    def _publish(self, sink: SinkNode) -> None:
        """Gives the records their topic here, where the columns that it is made from are at hand."""
        topic = F.lit(sink.topic) if isinstance(sink.topic, str) else column_of(sink.topic, self._row(sink))
        self._settle()
        self._pass(sink)
        self._frame = self._frame.withColumn(f"topic_{sink.name}", F.when(self._here(sink), topic))

    def _published(self, sink: SinkNode) -> dict[str, Column]:
        """The columns of the records that a sink publishes."""
        key, value, headers, trail, _ = self._content[sink.name]
        nothing = {name: cast(F.lit(None), kind) for name, kind in _PUBLISHED.items()}
        origin = self._topology.origin
        keeps_value, keeps_headers = value == "source_value", headers == "source_headers"
        return {
            "key": F.col(key),
            "value": F.col(value),
            "headers": _whole(headers, trail, origin),
            "trail": F.col(trail) if trail else nothing["trail"],
            "topic": F.col(f"`topic_{sink.name}`"),
            "kept": F.lit(
                _KEEPS_VALUE * keeps_value + _KEEPS_HEADERS * keeps_headers + _ADDS_ORIGIN * (origin is not None)
            ),
            "new_value": nothing["value"] if keeps_value else F.col(value),
            "new_headers": nothing["headers"] if keeps_headers else F.col(headers),
        }

    def _fan_out(self, node: Node) -> None:
        """Copies the records of a stream that several nodes consume: one copy for each node."""
        consumers = self._children.get(node.name, ())
        if isinstance(node, Split) or len(consumers) < 2:
            return
        self._settle()
        copies = []
        for child in consumers:
            self._places[_edge(node.name, child)] = (self._new_place(),)
            copies.append(F.lit(self._next_place - 1))
        place = F.col(self._place)
        spread = F.when(_one_of(place, self._places[node.name]), F.array(*copies)).otherwise(F.array(place))
        self._version += 1
        self._frame = self._frame.select("*", F.explode(spread).alias(self._place))


def _whole(headers: str, trail: str, origin: str | None) -> Column:
    """All headers of a published record, as the sink that has the source record puts them together."""
    if origin is None and not trail:
        return F.col(headers)
    parts = [F.coalesce(F.col(name), cast(F.array(), HEADERS)) for name in (headers, trail) if name]
    if origin is not None:
        copy = F.when(F.col("copy") > 0, F.col("copy"))
        place = (*(F.col(f"source_{name}") for name in _ORIGIN[:3]), copy)
        position = F.concat_ws(":", *(cast(each, STRING) for each in place))
        texts = {ORIGIN: F.lit(origin), POSITION: position}
        own = (F.struct(F.lit(k).alias("key"), cast(text, BINARY).alias("value")) for k, text in texts.items())
        parts.insert(1, F.array(*own))
    return F.concat(*parts)


def _edge(parent: str, child: Node) -> str:
    return f"{parent}\0{child.name}"


def _one_of(place: Column, places: Sequence[int]) -> Column:
    if not places:
        return F.lit(False)
    if len(places) == 1:
        return place == places[0]
    if places[-1] - places[0] == len(places) - 1:
        return place.between(places[0], places[-1])
    return place.isin(*places)
