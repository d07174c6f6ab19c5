"""Contestants of the benchmark, and their start: the Kafka Streams peer, and the bridge in both modes."""

from __future__ import annotations

import shlex
import shutil
import sys
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from bench import programs
from bench.workload import BRIDGE_ID, SUBJECT, Work, properties
from engine.embedded import free_ports

__all__ = ["Bridge", "Contestant", "Peer", "Place"]


@dataclass(frozen=True, slots=True)
class Place:
    """Topics and files of one run."""

    bootstrap: str
    journal: str
    folder: Path
    run: str = field(default_factory=lambda: uuid.uuid4().hex[:8])
    work: Work = field(default_factory=Work)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Output topics of this run, one for each destination of each route."""
        return self.work.topics(self.run)

    @property
    def state(self) -> Path:
        """Folder for whatever the program keeps."""
        return self.folder / self.run

    @property
    def log(self) -> Path:
        """File with the output of the program."""
        return self.folder / f"{self.run}.log"

    def clean(self) -> None:
        """Removes what a run that went well has left, apart from its log."""
        shutil.rmtree(self.state, ignore_errors=True)


class Contestant(ABC):
    """A program that routes the journal."""

    name: str
    work: Work = Work()

    @abstractmethod
    def command(self, place: Place) -> list[str]:
        """Returns the command that starts the contestant; prepares its files."""


class Peer(Contestant):
    """Routing by a Kafka Streams program (`peer/…/Peer.java`)."""

    _OPTIONS: ClassVar[tuple[str, ...]] = ("-Xmx2g", "-XX:+UseParallelGC")
    """Heap and garbage collector of the peer: those of the router's JVM."""

    def __init__(
        self, linger_ms: int, threads: int = 2, work: Work | None = None, guarantee: str = "at_least_once"
    ) -> None:
        """`guarantee` is a `processing.guarantee` of Kafka Streams."""
        self.work = work or Work()
        self.name = "kafka streams" if guarantee == "at_least_once" else f"kafka streams, {guarantee}"
        self._guarantee = guarantee
        self._linger_ms = linger_ms
        self._threads = threads

    def command(self, place: Place) -> list[str]:
        """See `Contestant`."""
        return programs.command(
            "Peer",
            *self._OPTIONS,
            bootstrap=place.bootstrap,
            application=f"bench-{place.run}",
            journal=place.journal,
            outputs=",".join(place.outputs),
            origin=BRIDGE_ID,
            state=place.state,
            threads=self._threads,
            linger=self._linger_ms,
            bodies=self.work.bodies,
            schema=f"{self.work.schema}/subjects/{SUBJECT}/versions/latest",
            set=f"processing.guarantee:{self._guarantee},group.instance.id:{place.run}",
        )


class Bridge(Contestant):
    """The router process as a user runs it, with shipped defaults apart from `settings`."""

    FILE: ClassVar[str] = "bridge.properties"
    """Name of its properties file in the folder of a run."""
    COMMAND: ClassVar[str] = f"{shlex.quote(sys.executable)} -m engine run --only router --config"

    def __init__(
        self,
        mode: str,
        settings: Mapping[str, str],
        command: str = COMMAND,
        note: str = "",
        work: Work | None = None,
    ) -> None:
        """`command` gets the path of the properties file appended; `note` tells two bridges apart."""
        self.work = work or Work()
        self.name = f"bridge {mode}, {note}" if note else f"bridge {mode}"
        self._settings = {"router.mode": mode, **settings}
        self._command = command

    def command(self, place: Place) -> list[str]:
        """See `Contestant`."""
        place.state.mkdir(parents=True)
        (port,) = free_ports(1)
        own = {
            "router.checkpoint": str(place.state / "checkpoint"),
            # Each run begins at the journal's first record, whatever another one has noted.
            "journal.state-topic": f"state.{place.run}",
            "embedded.data": str(place.state),
            "http.address": f"127.0.0.1:{port}",
        }
        file = place.state / self.FILE
        settings = {**own, **self._settings}
        file.write_text(properties(place.bootstrap, place.journal, place.outputs, settings, place.work))
        return [*shlex.split(self._command), str(file)]

    @staticmethod
    def commits(place: Place) -> list[float]:
        """Times at which intervals were committed, in seconds since 1970."""
        found = (place.state / "checkpoint").rglob("commits/*")
        return sorted(path.stat().st_mtime for path in found if path.name.isdigit())

    @staticmethod
    def generations(place: Place) -> int:
        """Number of the router's newest generation."""
        return max(int(path.name) for path in (place.state / "checkpoint").iterdir() if path.name.isdigit())
