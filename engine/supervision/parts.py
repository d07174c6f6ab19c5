"""Which processes a configuration asks for, and how they depend on each other. Starts nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING

from engine.errors import UsageError
from engine.telemetry.status import component_name

if TYPE_CHECKING:
    from routes.model import Config, SourceConfig

__all__ = ["ARTEMIS", "KAFKA", "ROUTER", "Part", "Stage", "parts"]

KAFKA = "kafka"
ARTEMIS = "artemis"
ROUTER = "router"


class Stage(IntEnum):
    """The order in which parts stop: first nothing more comes in, then all is routed, then the brokers go."""

    SOURCE = 1
    ROUTER = 2
    BROKER = 3


@dataclass(frozen=True, slots=True)
class Part:
    """One process of the bridge."""

    name: str
    """Also its label in metrics and on `/ready`."""
    only: str
    """For `run --only`: what the process is started with."""
    stage: Stage
    worker: int = 1
    """From 1; above it only for sources with several workers."""
    needs: tuple[str, ...] = ()
    """Parts that have to be ready before this one begins its work."""


def parts(config: Config, only: str | None = None) -> tuple[Part, ...]:
    """The parts in the order of their start.

    `only` restricts them: `router`, `sources`, `source:NAME`, or an embedded `kafka` or `artemis`; what they need and
    is left out is taken to run elsewhere. UsageError for anything else.
    """
    chosen = [part for part in _all(config) if only is None or _wanted(part, only)]
    if not chosen:
        known = ", ".join(dict.fromkeys([part.only for part in _all(config)] + ["sources"]))
        message = f"--only {only}: there is no such part; expected one of {known}"
        raise UsageError(message)
    names = {part.name for part in chosen}
    return tuple(replace(part, needs=tuple(need for need in part.needs if need in names)) for part in chosen)


def _all(config: Config) -> list[Part]:
    found = []
    if config.embedded_kafka:
        found.append(Part(KAFKA, KAFKA, Stage.BROKER))
    if config.embedded_artemis:
        found.append(Part(ARTEMIS, ARTEMIS, Stage.BROKER))
    found.append(Part(ROUTER, ROUTER, Stage.ROUTER, needs=(KAFKA,)))
    for source in config.sources:
        found += [_worker(source, number) for number in range(1, source.workers + 1)]
    return found


def _worker(source: SourceConfig, number: int) -> Part:
    needs = (KAFKA,) if source.url else (KAFKA, ARTEMIS)
    return Part(component_name(source.name, number), component_name(source.name), Stage.SOURCE, number, needs)


def _wanted(part: Part, only: str) -> bool:
    return part.only == only or (only == "sources" and part.stage is Stage.SOURCE)
