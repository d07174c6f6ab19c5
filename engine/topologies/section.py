"""Section `topologies` of a configuration: topologies that run as parts of the bridge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from routes.keys.table import key, named
from routes.keys.values import FUNCTION, PLACE, choice, duration
from routes.section_registry import Section
from routes.sections import Policy

__all__ = ["SECTION", "TopologiesConfig", "TopologyConfig", "TopologyGuarantee", "TopologyMode"]


class TopologyMode(StrEnum):
    """Way in which a topology takes its records."""

    AUTO = "auto"
    REALTIME = "realtime"
    BATCH = "batch"


class TopologyGuarantee(StrEnum):
    """Promise of a topology for a crash."""

    EXACTLY_ONCE = "exactly_once"
    AT_LEAST_ONCE = "at_least_once"


@dataclass(frozen=True, slots=True)
class TopologyConfig:
    """`topologies.NAME.*`: a topology that runs as a part of the bridge."""

    name: str
    """NAME in the keys; the name of its state is that given to `StreamsBuilder`."""
    build: str = key(
        "build",
        FUNCTION,
        "The function that returns the topology. Its module is looked for in the working directory and among the "
        "installed packages.",
        example="examples.word_count:build",
        required=True,
    )
    mode: TopologyMode = key(
        "mode",
        choice(TopologyMode),
        "Mode of processing: each record as it comes, or batches `interval` apart. `auto`: batches where "
        "real-time mode would not be exact, else real-time mode.",
        default="auto",
    )
    guarantee: TopologyGuarantee = key(
        "guarantee",
        choice(TopologyGuarantee),
        "Guarantee for results: with `exactly_once` they are written in transactions with the positions behind their "
        "records.",
        default="exactly_once",
    )
    interval_seconds: float | None = key(
        "interval",
        duration("100ms", "1h"),
        "Time between two commits of the state; a restart computes again the records since the last one. In batches, "
        "the time between two batches; in real-time mode at least 5s.",
        default_note="30s; 1s in batches",
        example="10s",
    )
    on_failure: Policy = key(
        "on-failure",
        choice(Policy),
        "Treatment of a record that cannot be read or computed: it goes to the topic of the topology's dead letters, "
        "is dropped, or ends the topology.",
        default="dead-letter",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologiesConfig(Sequence[TopologyConfig]):
    """`topologies.*`: the topologies that run as parts of the bridge, in the order of the file, and their state."""

    declared: tuple[TopologyConfig, ...] = named("topologies", TopologyConfig)
    state: Path | str = key(
        "topologies.state",
        PLACE,
        "Directory of the states of all topologies, each in a folder of its own, or its URI, as for "
        "`router.checkpoint`. On a Spark cluster executors have to reach it.",
        default_note="`topologies` in `embedded.data`",
        example="hdfs://host:8020/topologies",
        inherited=lambda settings, _: (settings.get("embedded.data") or Path()) / "topologies",
        value=MISSING,
    )
    """A local path, or the URI of a folder on a file system of Hadoop."""
    function_timeout_seconds: float = key(
        "topologies.function-timeout",
        duration("1s", "1d"),
        "Time that one call of a topology's Python function may take: for a record, a timer or a batch of records. "
        "A longer call is ended, and its record is treated by `on-failure`.",
        default="5m",
    )

    def __getitem__(self, index: Any) -> Any:
        """Returns a topology, or those of a slice."""
        return self.declared[index]

    def __len__(self) -> int:
        """Returns the number of topologies."""
        return len(self.declared)


SECTION = Section(
    about="[Topologies](streams.md) that run as parts of the bridge, each in a process of its own. NAME is "
    "yours to choose.",
    noun="topology",
    settings=TopologiesConfig,
)
