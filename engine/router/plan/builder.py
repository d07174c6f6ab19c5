"""Builder of the router's plan: streams of messages without state, with named nodes in the order of flow.

    builder = PlanBuilder(origin="bridge-1")
    emea = MessageCondition(parse("region = 'emea'"))
    builder.stream("orders", name="orders").filter(emea, name="emea").to("orders-emea", name="to-emea")

Functions get a `PlanRow` of Columns and are called once, when the plan is compiled, never for each message. A record
goes to every consumer of its stream, and at a split to the first branch whose condition accepts it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from engine.router.plan.nodes import CopySplit, Fail, Map
from engine.router.plan.route_settings import ByBranch
from engine.router.plan.row import PlanFunction, PlanRow
from engine.topologies.library.branches import Branches
from engine.topologies.library.nodes import (
    Branch,
    Filter,
    Merge,
    Node,
    SelectKey,
    SinkNode,
    SourceNode,
    Split,
    branches,
)
from engine.topologies.library.topology import Topology, TopologyError, faults_of

__all__ = ["Plan", "PlanBuilder", "PlanStream"]


@dataclass(frozen=True, slots=True)
class Plan(Topology):
    """A checked topology without state that `engine.router.plan.compile` makes one Spark query of."""

    origin: str | None = None
    """Text of the header `jmsbridge.origin` that published records get, with `jmsbridge.position`, where they were
    read; None: they get neither."""


class PlanBuilder:
    """Builder of a plan: collects nodes, and checks them all in `build`."""

    def __init__(self, *, origin: str | None = None) -> None:
        """Creates a builder without nodes; `origin` is described at `Plan`."""
        self._origin = origin
        self._nodes: list[Node] = []

    def stream(self, topic: str, *, name: str) -> PlanStream:
        """A stream of the records of a topic."""
        return self.add(SourceNode(name, topic=topic))

    def add(self, node: Node) -> PlanStream:
        """Adds a node; the stream of the records that it passes."""
        self._nodes.append(node)
        return PlanStream(self, node.name)

    def build(self) -> Plan:
        """The finished plan; TopologyError with every fault."""
        faults = [*faults_of(self._nodes), *_choice_faults(self._nodes)]
        if faults:
            raise TopologyError(faults)
        return Plan(tuple(self._nodes), origin=self._origin)


class PlanStream:
    """Stream: the records at one point of a plan that is being built."""

    def __init__(self, builder: PlanBuilder, name: str) -> None:
        self._builder = builder
        self.name = name

    def filter(self, condition: PlanFunction, *, name: str) -> PlanStream:
        """The records for which the condition is true (neither false nor unknown)."""
        return self._builder.add(Filter(name, (self.name,), condition=_function(condition)))

    def map(self, change: Callable[[PlanRow], PlanRow], *, name: str, apart: bool = False) -> PlanStream:
        """The records as changed by a function, such as `lambda row: row.replace(value=…)`.

        `apart` is for a change that is a lot of code and meets few records: the others do not pay for it.
        """
        return self._builder.add(Map(name, (self.name,), change=change, apart=apart))

    def select_key(self, key: PlanFunction, *, name: str) -> PlanStream:
        """The records with another key."""
        return self._builder.add(SelectKey(name, (self.name,), key=_function(key)))

    def split(self, name: str, *, copies: bool = False) -> Branches[PlanStream, PlanFunction]:
        """A split of the stream: add branches with `branch`, end with `default_branch` or `no_default_branch`.

        With `copies`, a record goes to every branch that takes it, and to the default branch if none does.
        """
        self._builder.add((CopySplit if copies else Split)(name, (self.name,)))
        return Branches(
            lambda branch, condition: self._builder.add(Branch(branch, (name,), condition=_function(condition)))
        )

    def merge(self, *others: PlanStream, name: str) -> PlanStream:
        """A stream with the records of this stream and of the others."""
        return self._builder.add(Merge(name, (self.name, *(other.name for other in others))))

    def to(self, topic: str | PlanFunction, *, name: str) -> None:
        """Publishes each record to a topic, constant or computed from the record; if NULL, publishes nothing."""
        choices = topic.values if isinstance(topic, ByBranch) else {}
        self._builder.add(SinkNode(name, (self.name,), topic=_function(topic), choices=choices))

    def fail(self, message: PlanFunction, *, name: str) -> None:
        """Stops the query with an error at the first record of the stream; `message` gives the error's text."""
        self._builder.add(Fail(name, (self.name,), message=message))


def _function(given: Any) -> Any:
    """The given function as one of a `Row`: the compiler gives all functions of a plan a `PlanRow`."""
    return given


def _choice_faults(nodes: Sequence[Node]) -> Iterable[str]:
    """Faults of sinks that choose a topic by branch."""
    splits = branches(nodes)
    for node in nodes:
        if isinstance(node, SinkNode) and isinstance(node.topic, ByBranch):
            yield from (f"'{node.name}': {fault}" for fault in node.topic.faults(splits))
