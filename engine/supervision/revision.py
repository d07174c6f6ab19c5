"""One configuration of a running bridge, and what it takes to come from one to the next.

A bridge counts its configurations from 1: each is a *revision*. Parts are given theirs by the supervisor and read no
file, so that one that is started again works by the same as all others, whatever the file looks like by then.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING

from engine.supervision.parts import ROUTER, Stage
from routes.config.compare import compare
from routes.errors import BridgeError
from routes.targets import System

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine.supervision.parts import Part
    from routes.config.snapshot import Snapshot
    from routes.model import BrokerConfig, Config

__all__ = ["Change", "RefusedError", "Revision", "change"]

_RELOADED = ("routes", "routing", "source", "sink", "transformer", "reload")
"""Sections of keys that a running bridge can take."""


class RefusedError(BridgeError):
    """A configuration without a fault that only a restart can bring into force."""


@dataclass(frozen=True, slots=True)
class Revision:
    """One configuration of a running bridge."""

    number: int
    snapshot: Snapshot = field(repr=False)
    config: Config = field(repr=False)
    parts: tuple[Part, ...]

    @contextmanager
    def opened(self) -> Iterator[int]:
        """The descriptor of a file without a name that holds the snapshot, to be handed to another process.

        It may hold secrets: nobody else can open it, and it is gone when the last process has closed it.
        """
        with _nameless_file() as file:
            file.write(self.snapshot.dump())
            yield file.fileno()


@dataclass(frozen=True, slots=True)
class Change:
    """What the next revision means for the parts."""

    leave: tuple[str, ...] = ()
    """Parts that are no more wanted, or work otherwise now and are started again."""
    join: tuple[Part, ...] = ()
    """New ones, and those that are started again."""
    reroutes: bool = False
    """Whether the router works otherwise now; it changes while it runs."""

    @property
    def touched(self) -> frozenset[str]:
        """The names of all parts that work otherwise, or are gone."""
        return frozenset((*self.leave, *(part.name for part in self.join), *((ROUTER,) if self.reroutes else ())))


def change(old: Revision, new: Revision) -> Change:
    """What it takes to come from one revision to another; RefusedError if only a restart can."""
    differences = compare(old.snapshot.settings(), new.snapshot.settings())
    if fixed := dict.fromkeys(each.key for each in differences if each.section not in _RELOADED):
        keys = f"{', '.join(fixed)} cannot be changed" if len(fixed) > 1 else f"{next(iter(fixed))} cannot be changed"
        msg = f"{keys} while the bridge runs; restart it, or set {'them' if len(fixed) > 1 else 'it'} back"
        raise RefusedError(msg)
    before, after = ({part.name: part for part in revision.parts} for revision in (old, new))
    if servers := [
        name for name in (before | after) if (name in before) != (name in after) and _is_server(name, before | after)
    ]:
        verb = "start" if servers[0] in after else "stop"
        msg = f"this would {verb} the embedded {servers[0]}, which only a restart of the bridge does"
        raise RefusedError(msg)
    changed = {
        name
        for name, part in after.items()
        if name in before and (part != before[name] or _view(part, old.config) != _view(part, new.config))
    }
    moves = changed - {ROUTER}
    return Change(
        leave=tuple(name for name in before if name not in after or name in moves),
        join=tuple(part for name, part in after.items() if name not in before or name in moves),
        reroutes=ROUTER in changed,
    )


def _nameless_file() -> IO[bytes]:
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("jms-bridge"), "wb", buffering=0)
    return tempfile.TemporaryFile(buffering=0)


def _is_server(name: str, parts: Mapping[str, Part]) -> bool:
    return parts[name].stage is Stage.BROKER


def _view(part: Part, config: Config) -> object:
    """All that a part does differently by, as far as a running bridge can take it."""
    routing = config.routing
    match part.stage:
        case Stage.ROUTER:
            return routing, config.routes, config.sinks
        case Stage.BROKER:
            return None
    failures = routing.on_soft_failure, routing.dead_letter_topic
    if part.stage is Stage.SOURCE:
        own = _own(part, config.sources)
        # What the bridge itself writes is not read from Kafka.
        topics = tuple(sink.topic for sink in config.sinks) if own and own.type is System.KAFKA else ()
        return own, failures, topics
    policies = [
        (r.name, r.on_soft_failure) for r in config.routes if r.target.sink and part.only == f"sink:{r.target.sink}"
    ]
    # Whom a request was asked by, and whether a sink beside can take its reply, is told by where all of them are.
    places = tuple((broker.name, broker.type, config.url(broker)) for broker in config.brokers)
    return _own(part, config.sinks), failures, policies, places


def _own(part: Part, brokers: tuple[BrokerConfig, ...]) -> BrokerConfig | None:
    name = part.only.partition(":")[2]
    return next((broker for broker in brokers if broker.name == name), None)
