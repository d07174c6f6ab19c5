"""DSL in the manner of Kafka Streams that builds and checks topologies; it needs no Spark session and no broker.

A builder makes streams, a stream makes further streams, `build` gives a frozen `Topology`: a list of named nodes in the
order of flow. `describe` prints a topology, `compile` makes it a Spark query, `driver` runs it on a few records.
Functions in a node get a `Row` of Spark Columns and are called once, when the topology is compiled, never for each
record. The DSL has no windows, joins or state.

    builder = TopologyBuilder()
    orders = builder.stream("orders", name="orders")
    large, small = orders.split("size").branch(is_large, name="large").default_branch("small")
    large.to("orders-large", name="to-large")
    small.select_key(lambda row: row.header("region"), name="by-region").to("orders-small", name="to-small")
    topology = builder.build()

Where a builder has a language (`TextLanguage`), conditions and keys can also be text.

Delivery guarantees are those of the query that runs the topology. A record goes to every consumer of its stream, and at
a split to the first branch whose condition accepts it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from engine.streams.describe import describe, mermaid
from engine.streams.nodes import (
    Branch,
    Fail,
    Filter,
    Map,
    Merge,
    Node,
    RowFunction,
    SelectKey,
    SinkNode,
    SourceNode,
    Split,
    TextLanguage,
    TopicChoice,
    children,
)
from engine.streams.row import Row
from routes.errors import BridgeError

__all__ = ["Branches", "Stream", "Topology", "TopologyBuilder", "TopologyError"]

_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")


class TopologyError(BridgeError, ValueError):
    """A topology cannot be built; `faults` holds all reasons."""

    exit_code = 2

    def __init__(self, faults: Sequence[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(self.faults))


@dataclass(frozen=True, slots=True)
class Topology:
    """A checked topology: its nodes in the order of flow, parents before children."""

    nodes: tuple[Node, ...]
    origin: str | None = None
    """Text of the header `jmsbridge.origin` that published records get, with `jmsbridge.position`, where they were
    read; None: they get neither."""

    @property
    def sources(self) -> tuple[SourceNode, ...]:
        """The nodes that read topics."""
        return tuple(node for node in self.nodes if isinstance(node, SourceNode))

    def node(self, name: str) -> Node:
        """The node of that name; KeyError if there is none."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise KeyError(name)

    def children(self, name: str) -> tuple[Node, ...]:
        """The nodes that consume the records of the node of that name."""
        return tuple(children(self.nodes).get(name, ()))

    def branches(self, split: str) -> tuple[Branch, ...]:
        """The branches of a split in the order in which they are tried; a default branch is the last."""
        return tuple(node for node in self.children(split) if isinstance(node, Branch))

    def describe(self) -> str:
        """The topology in the format of `Topology.describe().toString()` of Kafka Streams."""
        return describe(self.nodes)

    def mermaid(self) -> str:
        """The topology as a Mermaid flowchart."""
        return mermaid(self.nodes)


class TopologyBuilder:
    """Builder of a topology: collects nodes, and checks them all in `build`."""

    def __init__(self, language: TextLanguage | None = None, *, origin: str | None = None) -> None:
        """Creates a builder without nodes; without a language, conditions and keys are functions, never text.

        `origin` is described at `Topology`.
        """
        self._language = language or _NoLanguage()
        self._origin = origin
        self._nodes: list[Node] = []
        self._faults: list[str] = []

    def stream(self, topic: str, *, name: str) -> Stream:
        """A stream of the records of a topic."""
        return self._add(SourceNode(name, topic=topic))

    def build(self) -> Topology:
        """The finished topology.

        Raises:
            TopologyError: with every fault: names used twice, topic names that Kafka would refuse, topics that are both
                read and written, text that its language refuses, splits without branches, no source or no sink.
        """
        faults = [*self._faults, *_faults(self._nodes)]
        if faults:
            raise TopologyError(faults)
        return Topology(tuple(self._nodes), self._origin)

    def _add(self, node: Node) -> Stream:
        self._nodes.append(node)
        return Stream(self, node.name)

    def _condition(self, condition: str | RowFunction, name: str) -> RowFunction:
        return self._read(self._language.condition, condition, name) if isinstance(condition, str) else condition

    def _key(self, key: str | RowFunction, name: str) -> RowFunction:
        return self._read(self._language.key, key, name) if isinstance(key, str) else key

    def _read(self, meaning: Callable[[str], RowFunction], text: str, name: str) -> RowFunction:
        try:
            return meaning(text)
        except BridgeError as error:
            self._faults.append(f"'{name}': {error}")
            return lambda row: row.key  # `build` raises the fault


class _NoLanguage:
    def condition(self, text: str) -> RowFunction:
        raise BridgeError(f"the builder has no language for the text '{text}'; give it one, or give a function")

    key = condition


class Stream:
    """Stream: the records at one point of a topology that is being built."""

    def __init__(self, builder: TopologyBuilder, name: str) -> None:
        self._builder = builder
        self.name = name

    def filter(self, condition: str | RowFunction, *, name: str) -> Stream:
        """The records for which the condition is true (neither false nor unknown)."""
        condition = self._builder._condition(condition, name)
        return self._builder._add(Filter(name, (self.name,), condition=condition))

    def map(self, change: Callable[[Row], Row], *, name: str, apart: bool = False) -> Stream:
        """The records as changed by a function, such as `lambda row: row.replace(value=…)`.

        `apart` is for a change that is a lot of code and meets few records: the others do not pay for it.
        """
        return self._builder._add(Map(name, (self.name,), change=change, apart=apart))

    def select_key(self, key: str | RowFunction, *, name: str) -> Stream:
        """The records with another key, as text or binary."""
        return self._builder._add(SelectKey(name, (self.name,), key=self._builder._key(key, name)))

    def split(self, name: str) -> Branches:
        """A split of the stream: add branches with `branch`, end with `default_branch` or `no_default_branch`."""
        self._builder._add(Split(name, (self.name,)))
        return Branches(self._builder, name)

    def merge(self, *others: Stream, name: str) -> Stream:
        """A stream with the records of this stream and of the others."""
        streams = (self, *others)
        if any(stream._builder is not self._builder for stream in streams):
            self._builder._faults.append(f"'{name}': merges streams of different builders")
        return self._builder._add(Merge(name, tuple(stream.name for stream in streams)))

    def to(self, topic: str | RowFunction, *, name: str) -> None:
        """Publishes each record to a topic, constant or computed from the record; if NULL, publishes nothing.

        A `TopicChoice` is a function whose topics are known: they are checked and shown.
        """
        self._builder._add(SinkNode(name, (self.name,), topic=topic))

    def fail(self, message: RowFunction, *, name: str) -> None:
        """Stops the query with an error at the first record of the stream; `message` gives the error's text."""
        self._builder._add(Fail(name, (self.name,), message=message))


class Branches:
    """A split that is being built; `default_branch` and `no_default_branch` return its streams in order."""

    def __init__(self, builder: TopologyBuilder, split: str) -> None:
        self._builder = builder
        self._split = split
        self._streams: list[Stream] = []

    def branch(self, condition: str | RowFunction, *, name: str) -> Branches:
        """Adds a branch for records that no earlier branch took, if the condition is true."""
        return self._branch(Branch(name, (self._split,), condition=self._builder._condition(condition, name)))

    def default_branch(self, name: str) -> tuple[Stream, ...]:
        """Ends the split; returns its streams, the last of them with the records that no branch took."""
        return tuple(self._branch(Branch(name, (self._split,), condition=None))._streams)

    def no_default_branch(self) -> tuple[Stream, ...]:
        """Ends the split; returns its streams. Records that no branch took end at the split."""
        return tuple(self._streams)

    def _branch(self, branch: Branch) -> Branches:
        self._streams.append(self._builder._add(branch))
        return self


def _faults(nodes: Sequence[Node]) -> Iterable[str]:
    names: set[str] = set()
    for node in nodes:
        if node.name in names:
            yield f"'{node.name}': the name is used by two nodes; give each its own"
        names.add(node.name)
    sources = [node for node in nodes if isinstance(node, SourceNode)]
    sinks = [node for node in nodes if isinstance(node, SinkNode)]
    if not sources:
        yield "the topology reads nothing: start with stream(topic)"
    if not any(isinstance(node, SinkNode | Fail) for node in nodes):
        yield "the topology writes nothing: end a stream with to(topic)"
    read: dict[str, str] = {}
    for source in sources:
        yield from _topic_faults(source.name, source.topic)
        if source.topic in read:
            yield f"'{source.name}': topic '{source.topic}' is read by '{read[source.topic]}' already; use that stream"
        read.setdefault(source.topic, source.name)
    for sink in sinks:
        for topic in _constant_topics(sink):
            yield from _topic_faults(sink.name, topic)
            if topic in read:
                yield f"'{sink.name}': topic '{topic}' is read by '{read[topic]}': records would go round for ever"
    yield from _structure_faults(nodes)


def _structure_faults(nodes: Sequence[Node]) -> Iterable[str]:
    splits = {
        node.name: [n.name for n in nodes if isinstance(n, Branch) and node.name in n.parents]
        for node in nodes
        if isinstance(node, Split)
    }
    for split, branches in splits.items():
        if not branches:
            yield f"'{split}': a split without branches"
    for node in nodes:
        if isinstance(node, Merge) and len(set(node.parents)) < len(node.parents):
            yield f"'{node.name}': merges a stream with itself"
        if isinstance(node, SinkNode) and isinstance(node.topic, TopicChoice):
            yield from (f"'{node.name}': {fault}" for fault in node.topic.faults(splits))


def _topic_faults(name: str, topic: str) -> Iterable[str]:
    if not _TOPIC.fullmatch(topic) or topic in (".", ".."):
        yield f"'{name}': '{topic}' is no topic name (1 to 249 of a-z, A-Z, 0-9, '.', '_' and '-')"


def _constant_topics(sink: SinkNode) -> tuple[str, ...]:
    if isinstance(sink.topic, TopicChoice):
        return tuple(dict.fromkeys(sink.topic.topics.values()))
    return (sink.topic,) if isinstance(sink.topic, str) else ()
