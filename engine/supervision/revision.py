"""A configuration of a running bridge, and the change from one to the next.

A bridge counts its configurations from 1: each is a *revision*. The supervisor gives parts their revision, and they
read no file, so that a restarted part works by the same configuration as all others, whatever the file holds by then.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from engine.private import nameless_file
from engine.supervision.parts import ROUTER, Stage, parts, topology_of
from engine.topologies.runtime.code import dump_codes, load_codes, read_code
from engine.topologies.section import TopologiesConfig
from routes.config.compare import compare
from routes.config.snapshot import Snapshot
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine.supervision.parts import Part
    from engine.topologies.runtime.code import TopologyCode
    from routes.model import BrokerConfig, Config

__all__ = ["RestartNeededError", "Revision", "RevisionChange", "change", "given", "revision_of"]

_RELOADED = ("routes", "routing", "source", "sink", "topologies", "transformer", "reload", "find")
"""Sections of keys that can change while the bridge runs."""


class RestartNeededError(BridgeError):
    """A configuration without a fault that only a restart can bring into force."""


@dataclass(frozen=True, slots=True)
class Revision:
    """A configuration of a running bridge, with its number and its parts."""

    number: int
    snapshot: Snapshot = field(repr=False)
    config: Config = field(repr=False)
    parts: tuple[Part, ...]
    codes: Mapping[str, TopologyCode] = field(default_factory=dict, repr=False)
    """The source files of each topology, by its name."""

    @contextmanager
    def opened(self) -> Iterator[int]:
        """Yields the descriptor of a nameless file with snapshot and codes, a line each, for another process.

        The snapshot may hold secrets, which must not be in a file that others can find.
        """
        with nameless_file(self.dump()) as file:
            yield file.fileno()

    def changed_files(self, other: Revision) -> list[str]:
        """Paths of the source files that differ between topologies which are in both revisions."""
        both = [(code, other.codes[name]) for name, code in self.codes.items() if name in other.codes]
        return list(dict.fromkeys(file for before, after in both for file in before.changed(after)))

    def dump(self) -> bytes:
        """Returns snapshot and codes as bytes, for `given` in another process."""
        return self.snapshot.dump() + b"\n" + dump_codes(self.codes)


def revision_of(number: int, snapshot: Snapshot, config: Config, only: str | None) -> Revision:
    """Makes the revision of a configuration, with the source files of its topologies as they are on disk now.

    `only` is as for `parts.parts`, which may raise.
    """
    found = parts(config, only)
    run = {topology_of(part.only) for part in found}
    codes = {
        each.name: read_code(each.build, Path.cwd()) for each in config.section(TopologiesConfig) if each.name in run
    }
    return Revision(number, snapshot, config, found, codes)


def given(dumped: bytes) -> tuple[Snapshot, dict[str, TopologyCode]]:
    """Restores snapshot and codes from the bytes of `Revision.dump`."""
    snapshot, _, codes = dumped.partition(b"\n")
    return Snapshot.of(snapshot), load_codes(codes)


@dataclass(frozen=True, slots=True)
class RevisionChange:
    """The effect of the next revision on the parts."""

    leave: tuple[str, ...] = ()
    """Names of the parts that are no longer wanted, and of those whose settings change, which are started again."""
    join: tuple[Part, ...] = ()
    """New parts, and those that are started again."""
    reroutes: bool = False
    """True if the settings of the router change, which takes them while it runs."""

    @property
    def touched(self) -> frozenset[str]:
        """The names of all parts that change, are new, or are no longer wanted."""
        return frozenset((*self.leave, *(part.name for part in self.join), *((ROUTER,) if self.reroutes else ())))


def change(old: Revision, new: Revision) -> RevisionChange:
    """Returns the change that leads from one revision to another.

    Raises:
        RefusedError: only a restart of the bridge can make that change.
    """
    differences = compare(old.snapshot.settings(), new.snapshot.settings())
    if fixed := dict.fromkeys(each.key for each in differences if each.section not in _RELOADED):
        keys = f"{', '.join(fixed)} cannot be changed" if len(fixed) > 1 else f"{next(iter(fixed))} cannot be changed"
        msg = f"{keys} while the bridge runs; restart it, or set {'them' if len(fixed) > 1 else 'it'} back"
        raise RestartNeededError(msg)
    before, after = ({part.name: part for part in revision.parts} for revision in (old, new))
    if servers := [
        name for name in (before | after) if (name in before) != (name in after) and _is_server(name, before | after)
    ]:
        verb = "start" if servers[0] in after else "stop"
        msg = f"the change would {verb} the embedded {servers[0]}, which only a restart of the bridge does"
        raise RestartNeededError(msg)
    changed = {
        name
        for name, part in after.items()
        if name in before and (part != before[name] or _view(part, old) != _view(part, new))
    }
    moves = changed - {ROUTER}
    return RevisionChange(
        leave=tuple(name for name in before if name not in after or name in moves),
        join=tuple(part for name, part in after.items() if name not in before or name in moves),
        reroutes=ROUTER in changed,
    )


def _is_server(name: str, parts: Mapping[str, Part]) -> bool:
    return parts[name].stage is Stage.BROKER


def _view(part: Part, revision: Revision) -> object:
    """Returns the settings and code that a part's work depends on, as far as they can change while the bridge runs."""
    config = revision.config
    routing = config.routing
    match part.stage:
        case Stage.ROUTER:
            return routing, config.routes, config.sinks, config.source_schemas
        case Stage.TOPOLOGY:
            name = topology_of(part.only)
            wanted = [topology for topology in config.section(TopologiesConfig) if topology.name == name]
            return wanted, config.section(TopologiesConfig).state, revision.codes.get(name or "")
        case Stage.BROKER:
            return None
    failures = routing.on_soft_failure, routing.dead_letter_topic
    if part.stage is Stage.SOURCE:
        own = _own(part, config.sources)
        # A Kafka source does not read the topics that the bridge itself writes, so it depends on them.
        topics = tuple(sink.topic for sink in config.sinks) if own and own.in_own_cluster else ()
        return own, failures, topics
    policies = [
        (route.name, route.on_soft_failure)
        for route in config.routes
        if any(target.sink and part.only == f"sink:{target.sink}" for target in route.targets)
    ]
    # A sink finds the asker of a request, and a sink that can take its reply, by the addresses of all sources and
    # sinks.
    places = tuple((broker.name, broker.type, config.url(broker)) for broker in config.brokers)
    return _own(part, config.sinks), failures, policies, places


def _own(part: Part, brokers: tuple[BrokerConfig, ...]) -> BrokerConfig | None:
    name = part.only.partition(":")[2]
    return next((broker for broker in brokers if broker.name == name), None)
