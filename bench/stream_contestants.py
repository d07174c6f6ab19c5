"""Programs that run a topology in the benchmarks: the engine, and Kafka Streams."""

from __future__ import annotations

import shutil
import sys
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bench import programs
from bench.processes import running
from engine.embedded import free_ports

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from bench.processes import ProcessTree

__all__ = ["NATIVE", "PYTHON", "TOPOLOGIES", "WINDOWS", "StreamContestant", "StreamPlace"]

NATIVE = ("count", "table", "join", "once")
"""Topologies that Kafka Streams runs as well."""
PYTHON = ("column", "process")
"""Topologies with Python functions."""
WINDOWS = ("tumbling", "hopping")
"""Sums over windows of a minute that follow one another, and over those that begin each second."""
TOPOLOGIES = (*NATIVE, *PYTHON, *WINDOWS)
_THREADS = 2
_OPTIONS = ("-Xmx2g", "-XX:+UseParallelGC")


def _run() -> str:
    return uuid.uuid4().hex[:8]


@dataclass(frozen=True, slots=True)
class StreamPlace:
    """Topics and files of one run of a topology."""

    bootstrap: str
    topology: str
    prefix: str
    """With what the names of the input topics begin."""
    folder: Path
    run: str = field(default_factory=_run)
    kind: str = "stream_topologies"
    """Module of `bench` with the engine's topologies."""

    @classmethod
    def apart(cls, bootstrap: str, topology: str, folder: Path, kind: str = "stream_topologies") -> StreamPlace:
        """A place with an input of its own."""
        run = _run()
        return cls(bootstrap, topology, f"in.{run}.", folder, run, kind)

    @property
    def events(self) -> str:
        """Input topic of events."""
        return f"{self.prefix}events"

    @property
    def output(self) -> str:
        """Topic that the topology writes to."""
        return f"out.{self.run}"

    @property
    def state(self) -> Path:
        """Folder for whatever the program keeps."""
        return self.folder / self.run

    def clean(self) -> None:
        """Removes what the program has kept."""
        shutil.rmtree(self.state, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class StreamContestant:
    """Program that runs a topology, with a guarantee and, if it is the engine, in a mode."""

    mode: str
    """Empty: Kafka Streams."""
    is_exact: bool

    @property
    def guarantee(self) -> str:
        """Name that the program has for its guarantee."""
        exact = "exactly_once" if self.mode else "exactly_once_v2"
        return exact if self.is_exact else "at_least_once"

    @property
    def name(self) -> str:
        """Name in tables."""
        return f"{f'engine {self.mode}' if self.mode else 'kafka streams'} {self.guarantee}"

    def running(self, place: StreamPlace, linger_ms: int = 20) -> AbstractContextManager[ProcessTree]:
        """The program for the time of the block, going on with what an earlier one has kept in the same place.

        Args:
            place: where it runs.
            linger_ms: how long the producer of Kafka Streams waits for more records; the engine's has its defaults.
        """
        command, environment = self._engine(place) if self.mode else (self._peer(place, linger_ms), {})
        return running(command, place.folder / f"{place.run}.log", programs.ROOT, environment)

    def _engine(self, place: StreamPlace) -> tuple[list[str], dict[str, str]]:
        place.state.mkdir(parents=True, exist_ok=True)
        file = place.state / "bridge.properties"
        (port,) = free_ports(1)
        file.write_text(
            f"bridge.id=bench\nkafka.bootstrap.servers={place.bootstrap}\nembedded.data={place.state}\n"
            f"source.none.type=dropbox\nsource.none.root={place.state}/none\nsource.none.destinations=queue:none\n"
            f"routes.none.in.include=TRUE\nroutes.none.out.topic=none\nhttp.address=127.0.0.1:{port}\n"
        )
        command = [sys.executable, "-m", "engine", "topology", "run", f"bench.{place.kind}:{place.topology}"]
        command += ["--mode", self.mode, "--guarantee", self.guarantee, "-c", str(file)]
        return command, {"BENCH_PREFIX": place.prefix, "BENCH_OUTPUT": place.output}

    def _peer(self, place: StreamPlace, linger_ms: int) -> list[str]:
        return programs.command(
            "Streams",
            *_OPTIONS,
            bootstrap=place.bootstrap,
            application=f"bench-{place.output}",
            topology=place.topology,
            prefix=place.prefix,
            output=place.output,
            guarantee=self.guarantee,
            state=place.state,
            threads=_THREADS,
            linger=linger_ms,
        )
