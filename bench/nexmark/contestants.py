"""Programs that run a query: the engine, Kafka Streams and Flink SQL, each exactly once with two threads."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from bench import programs
from bench.processes import running
from bench.stream_contestants import StreamContestant

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from bench.processes import ProcessTree
    from bench.stream_contestants import StreamPlace

__all__ = ["NexmarkContestant", "NexmarkProgram"]

_THREADS = 2
_HEAP = "-Xmx2g"
_SQL = Path(__file__).with_name("queries.sql")


class NexmarkProgram(StrEnum):
    """Program that takes part."""

    BATCH = "batch"
    REALTIME = "realtime"
    KAFKA_STREAMS = "kafka-streams"
    FLINK = "flink"
    FLINK_HEAP = "flink-heap"

    @property
    def is_engine(self) -> bool:
        """True for the engine in either mode."""
        return self in {NexmarkProgram.BATCH, NexmarkProgram.REALTIME}

    @property
    def is_flink(self) -> bool:
        """True for Flink with either of its stores."""
        return self in {NexmarkProgram.FLINK, NexmarkProgram.FLINK_HEAP}


_BATCH_ONLY = {"q3", "q4", "q8", "q12", "q15", "q16", "q20"}
"""Queries in which records of several topics meet in a node with state, or with Python functions."""


@dataclass(frozen=True, slots=True)
class NexmarkContestant:
    """Program with a query."""

    program: NexmarkProgram
    query: str

    @property
    def is_able(self) -> bool:
        """True if the program can run the query exactly once."""
        return self.program is not NexmarkProgram.REALTIME or self.query not in _BATCH_ONLY

    @property
    def still_seconds(self) -> float:
        """Time longer than that for which the program publishes nothing while it works."""
        # Windows of the time of processing are published when they end, after ten seconds.
        return 16.0 if self.query == "q12" else 6.0

    def group(self, place: StreamPlace) -> str:
        """Consumer group with the positions in the input."""
        return f"{self.query}-{place.output}"

    def running(self, place: StreamPlace) -> AbstractContextManager[ProcessTree]:
        """The program for the time of the block."""
        if self.program.is_engine:
            return StreamContestant(self.program, is_exact=True).running(place)
        given: dict[str, object] = {
            "bootstrap": place.bootstrap,
            "application": self.group(place),
            "query": self.query,
            "input": place.events,
            "output": place.output,
            "state": place.state,
            "threads": _THREADS,
        }
        options = (_HEAP, "-XX:+UseParallelGC")
        if self.program.is_flink:
            given |= {"sql": _SQL, "store": "rocksdb" if self.program is NexmarkProgram.FLINK else "hashmap"}
            command = programs.command("flink/NexmarkSql", *_FLINK_OPTIONS, *options, **given)
        else:
            command = programs.command("nexmark.Nexmark", *options, **given)
        return running(command, place.folder / f"{place.run}.log", programs.ROOT)


_FLINK_OPTIONS = (
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.time=ALL-UNNAMED",
)
"""Access to classes of Java that Flink's serializers need, as in the scripts of its distribution."""
