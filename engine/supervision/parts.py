"""The processes that a configuration asks for, and how they depend on each other. Starts nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING

from engine.errors import UsageError
from engine.telemetry.status import component_name, sink_component
from engine.topologies.section import TopologiesConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from routes.model import BrokerConfig, Config

__all__ = [
    "ARTEMIS",
    "KAFKA",
    "NATS",
    "ROUTER",
    "Part",
    "Stage",
    "parts",
    "stands_for_election",
    "topology_of",
    "topology_part",
]

KAFKA = "kafka"
ARTEMIS = "artemis"
NATS = "nats"
ROUTER = "router"


class Stage(IntEnum):
    """The order in which parts stop.

    Sources stop first, so that nothing more comes in; then the router, after it has routed all; then topologies, sinks
    and brokers.
    """

    SOURCE = 1
    ROUTER = 2
    TOPOLOGY = 3
    SINK = 4
    BROKER = 5


@dataclass(frozen=True, slots=True)
class Part:
    """A process of the bridge."""

    name: str
    """Name of the part, also its label in metrics and on `/ready`."""
    only: str
    """Argument of `run --only` with which the process is started."""
    stage: Stage
    worker: int = 1
    """Number of the worker, from 1; above 1 only for sources and sinks with several workers."""
    needs: tuple[str, ...] = ()
    """Names of the parts that have to be ready before this one begins its work."""


_GROUPS = {"sources": Stage.SOURCE, "topologies": Stage.TOPOLOGY, "sinks": Stage.SINK}
_TOPOLOGY = "topology:"


def parts(config: Config, only: str | None = None) -> tuple[Part, ...]:
    """Returns the parts in the order of their start.

    `only` restricts them: `router`, `sources`, `source:NAME`, `topologies`, `topology:NAME`, `sinks`, `sink:NAME`, or
    an embedded `kafka`, `artemis` or `nats`. A part that they need and that is left out is taken to run elsewhere.

    Raises:
        UsageError: `only` names no part.
    """
    chosen = [part for part in _all(config) if only is None or _wanted(part, only)]
    if not chosen:
        stages = {part.stage for part in _all(config)}
        groups = [group for group, stage in _GROUPS.items() if stage in stages]
        known = ", ".join(dict.fromkeys([part.only for part in _all(config)] + groups))
        message = f"--only {only}: there is no such part; expected one of {known}"
        raise UsageError(message)
    names = {part.name for part in chosen}
    return tuple(replace(part, needs=tuple(need for need in part.needs if need in names)) for part in chosen)


def stands_for_election(only: str | None) -> bool:
    """True if parts chosen by `only` may work in one bridge at a time only, which is so if the router is among them.

    Sources and sinks that run without a router share their work with others of their name.
    """
    return only in (None, ROUTER)


def _all(config: Config) -> list[Part]:
    found = []
    if config.embedded_kafka:
        found.append(Part(KAFKA, KAFKA, Stage.BROKER))
    if config.embedded_artemis:
        found.append(Part(ARTEMIS, ARTEMIS, Stage.BROKER))
    if config.embedded_nats:
        found.append(Part(NATS, NATS, Stage.BROKER))
    found.append(Part(ROUTER, ROUTER, Stage.ROUTER, needs=(KAFKA,)))
    for topology in config.section(TopologiesConfig):
        name = topology_part(topology.name)
        found.append(Part(name, name, Stage.TOPOLOGY, needs=(KAFKA,)))
    for source in config.sources:
        found += _workers(source, Stage.SOURCE, component_name)
    for sink in config.sinks:
        found += _workers(sink, Stage.SINK, sink_component)
    return found


def topology_part(name: str) -> str:
    """Name of the part that runs a topology: `topology:NAME`."""
    return f"{_TOPOLOGY}{name}"


def topology_of(part: str) -> str | None:
    """NAME of the topology that a part runs; None for other parts."""
    return part.removeprefix(_TOPOLOGY) if part.startswith(_TOPOLOGY) else None


def _workers(broker: BrokerConfig, stage: Stage, named: Callable[[str, int], str]) -> list[Part]:
    server = broker.type.server
    needs = (KAFKA,) if broker.url or broker.listen or server is None else (KAFKA, server.name)
    return [
        Part(named(broker.name, number), named(broker.name, 1), stage, number, needs)
        for number in range(1, broker.workers + 1)
    ]


def _wanted(part: Part, only: str) -> bool:
    return part.only == only or _GROUPS.get(only) is part.stage
