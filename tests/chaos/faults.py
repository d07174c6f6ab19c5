"""What is done to a bridge, each a small value: done by `inject`, undone by `mend`."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from tests.chaos.ledger import KAFKA, SOURCES
from tests.chaos.system import LINKS
from tests.integration.bridge_process import descendants, wait
from tests.processes import gone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.chaos.system import System

__all__ = ["FAULTS", "KILLS", "Fault"]


class Fault(Protocol):
    """Something that goes wrong."""

    @property
    def name(self) -> str:
        """For people: what happens to what."""

    @property
    def witness(self) -> str:
        """The output in which nothing new arrives until the bridge is over it."""

    @property
    def seconds(self) -> float:
        """How long it lasts before it is mended; 0 for what is over at once."""

    def inject(self, system: System) -> None:
        """It happens."""

    def mend(self, system: System) -> None:
        """It is over; what was killed is not brought back here but by the bridge."""


class Victim(StrEnum):
    """Which processes of a part."""

    PROCESS = "process"
    """The part's own, in Python; what it has started is left to whatever ends it."""
    SERVER = "server"
    """What it has started: the JVM of the router, a broker."""
    BOTH = "both"


_SERVERS = {"router": "JVM", "kafka": "broker", "artemis": "broker", "nats": "broker"}
"""What parts that start a program call it here."""


@dataclass(frozen=True, slots=True)
class Kill:
    """SIGKILL."""

    part: str
    victim: Victim = Victim.PROCESS
    seconds: float = 0.0

    @property
    def name(self) -> str:
        return f"kill {_title(self.part, self.victim)}"

    @property
    def witness(self) -> str:
        return _witness(self.part)

    def inject(self, system: System) -> None:
        _signal(system, self.part, self.victim, signal.SIGKILL)

    def mend(self, system: System) -> None:
        pass


@dataclass(frozen=True, slots=True)
class KillBridge:
    """SIGKILL to the supervisor, whose parts have to end by themselves; and a new one at once."""

    name: str = "kill supervisor"
    witness: str = f"{KAFKA}.stomp"
    seconds: float = 0.0

    def inject(self, system: System) -> None:
        supervisor = system.bridge.process
        assert supervisor is not None
        orphans = descendants(supervisor.pid)
        supervisor.kill()
        supervisor.wait()
        system.bridge.start()
        # Until then they may finish what they have begun, which would look like the work of the new ones.
        wait(lambda: all(map(gone, orphans)), lambda: f"left of a killed bridge: {orphans}")

    def mend(self, system: System) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Freeze:
    """SIGSTOP, and after some seconds SIGCONT: a process that is not dead but does nothing."""

    part: str
    victim: Victim = Victim.PROCESS
    seconds: float = 5.0

    @property
    def name(self) -> str:
        return f"freeze {_title(self.part, self.victim)}"

    @property
    def witness(self) -> str:
        return _witness(self.part)

    def inject(self, system: System) -> None:
        _signal(system, self.part, self.victim, signal.SIGSTOP)

    def mend(self, system: System) -> None:
        _signal(system, self.part, self.victim, signal.SIGCONT)


@dataclass(frozen=True, slots=True)
class CutOff:
    """Nobody gets through to a broker for some seconds."""

    link: str
    seconds: float = 3.0

    @property
    def name(self) -> str:
        return f"cut off {self.link}"

    @property
    def witness(self) -> str:
        return _witness(self.link)

    def inject(self, system: System) -> None:
        system.proxies[self.link].refuses = True
        system.proxies[self.link].cut()

    def mend(self, system: System) -> None:
        system.proxies[self.link].refuses = False


@dataclass(frozen=True, slots=True)
class CutFrame:
    """A connection ends in the middle of a frame, in whichever direction."""

    link: str
    seconds: float = 1.0
    after_bytes: int = 4321

    @property
    def name(self) -> str:
        return f"cut a frame of {self.link}"

    @property
    def witness(self) -> str:
        return _witness(self.link)

    def inject(self, system: System) -> None:
        system.proxies[self.link].cut_after(self.after_bytes)

    def mend(self, system: System) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Silence:
    """A broker says nothing any more, and nobody hangs up; new connections work."""

    link: str
    seconds: float = 0.0

    @property
    def name(self) -> str:
        return f"silence {self.link}"

    @property
    def witness(self) -> str:
        return _witness(self.link)

    def inject(self, system: System) -> None:
        system.proxies[self.link].silence()

    def mend(self, system: System) -> None:
        system.proxies[self.link].resume()


@dataclass(frozen=True, slots=True)
class Slow:
    """A network that carries little: a broker that gives, or takes, a few kilobytes a second."""

    link: str
    seconds: float = 8.0

    @property
    def name(self) -> str:
        return f"slow down {self.link}"

    @property
    def witness(self) -> str:
        return _witness(self.link)

    def inject(self, system: System) -> None:
        proxy = system.proxies[self.link]
        proxy.piece_bytes = 512
        proxy.pause_seconds = proxy.pause_up_seconds = 0.1

    def mend(self, system: System) -> None:
        proxy = system.proxies[self.link]
        proxy.piece_bytes = 1 << 16
        proxy.pause_seconds = proxy.pause_up_seconds = 0.0


def _parts() -> Iterator[tuple[str, Victim]]:
    yield from ((f"source:{name}", Victim.PROCESS) for name in SOURCES)
    yield from ((f"sink:{name}", Victim.PROCESS) for name in ("stomp", "amqp", "nats", "dropbox"))
    yield from (("router", victim) for victim in Victim)
    yield from ((name, Victim.SERVER) for name in ("kafka", "artemis", "nats"))


KILLS: tuple[Fault, ...] = (KillBridge(), *(Kill(part, victim) for part, victim in _parts()))
"""Each process of a bridge, and its supervisor."""
FAULTS: tuple[Fault, ...] = (
    *(Freeze(part, victim) for part, victim in _parts() if victim is not Victim.BOTH),
    *(fault(link) for fault in (CutOff, CutFrame, Silence, Slow) for link in LINKS),
)
"""What is mended from outside."""


def _title(part: str, victim: Victim) -> str:
    """`router (JVM)`."""
    if part not in _SERVERS:
        return part
    what = {Victim.PROCESS: "driver", Victim.SERVER: _SERVERS[part], Victim.BOTH: f"driver and {_SERVERS[part]}"}
    return f"{part} ({what[victim]})"


def _witness(part: str) -> str:
    kind, _, name = part.partition(":")
    if kind == "source":
        return f"{KAFKA}.{name}"
    if kind == "sink":
        return name
    return {"artemis": "stomp", "nats": "nats"}.get(part, f"{KAFKA}.stomp")


def _signal(system: System, part: str, victim: Victim, number: signal.Signals) -> None:
    """Returns when a killed process is gone."""
    pids = []
    # First of all who they are: what one process has started is found below it only while it lives.
    if victim is not Victim.PROCESS:
        pids.append(system.server(part))
    if victim is not Victim.SERVER:
        pids.append(system.process(part))
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
    if number is signal.SIGKILL:
        wait(lambda: all(gone(pid) for pid in pids), lambda: f"{part} survives SIGKILL")
