"""Topics that a topology reads: whether it has read the same ones before, and whether they change while it runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Event, Thread
from typing import TYPE_CHECKING

import structlog

from engine.errors import HardFailureError, SetupError
from engine.kafka.errors import KafkaUnavailableError
from engine.kafka.offsets import KafkaOffsets

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from engine.kafka.offsets import TopicFacts
    from engine.spark.stored_files import Folder
    from engine.topologies.runtime.layout import Layout
    from routes.kafka_access import KafkaAccess

__all__ = ["InputWatch", "check_first_start", "check_identity", "growth_refusal"]

_LOOK_SECONDS = 5.0
_JOIN_SECONDS = 15.0

_log = structlog.get_logger(__name__)


def check_first_start(access: KafkaAccess, name: str, build: str, folder: Folder, layout: Layout) -> None:
    """Checks that a topology whose folder no earlier run has begun has not run before.

    Args:
        access: the Kafka with its topics.
        name: the name of the topology.
        build: the function that builds it, as `module:function`.
        folder: the folder of its state.
        layout: its topics, which exist.

    Raises:
        SetupError: Kafka has committed positions of the topology, or records in its internal topics.
        UnreachableError: Kafka does not answer.
    """
    kafka = KafkaOffsets(access)
    read = [topic for topic, count in layout.partitions.items() if kafka.committed(name, topic, range(count))]
    filled = [topic for topic, ends in kafka.ends(layout.internal).items() if any(ends.values())]
    traces = [
        *([f"its group '{name}' has positions in {_named(read)}"] if read else []),
        *([f"there are records in its internal {_named(filled)}"] if filled else []),
    ]
    if traces:
        msg = (
            f"topology '{name}' has no state in {folder}, but has run before: {', and '.join(traces)}. With empty "
            "state its results would be those of a part of the records alone. Three ways out: set topologies.state to "
            "the folder where its state is, which bridges that stand by for each other have in common; restore the "
            f"folder from a copy; or begin anew with `jms-bridge topology reset {build}`, after which it reads its "
            "topics from their beginning"
        )
        raise SetupError(msg)


def check_identity(name: str, folder: Folder, kept: Mapping[str, str], now: Mapping[str, TopicFacts]) -> None:
    """Checks that topics are those that a topology has read before.

    Args:
        name: the name of the topology.
        folder: the folder of its state.
        kept: Kafka's id of each topic that was read.
        now: the topics as they are.

    Raises:
        SetupError: topics were deleted and created again.
    """
    other = [topic for topic, each in now.items() if each.id and kept.get(topic) and each.id != kept[topic]]
    if other:
        ids = ", ".join(f"'{topic}' (Kafka's id is {now[topic].id} and was {kept[topic]})" for topic in other)
        msg = (
            f"topology '{name}' reads topics that were deleted and created again: {ids}. Its positions and the state "
            f"in {folder} are of the former topics. Three ways out: restore these; throw the state away with `jms-"
            f"bridge topology reset {name}`, and read all topics from their beginning; or give StreamsBuilder a new "
            "name, which begins with empty state"
        )
        raise SetupError(msg)


def growth_refusal(name: str, topic: str, before: int, now: int, nodes: Sequence[str]) -> str:
    """Text about partitions that were added to a topic on whose number the state of `nodes` depends, with ways out."""
    drops = " ".join(f"--drop {node}" for node in nodes)
    return (
        f"topic '{topic}' has {now} partitions and topology '{name}' reads {before}: what is in the new ones is not "
        f"read, and producers send keys to other partitions than those for which {', '.join(nodes)} has them. Ways "
        f"out, when the topology is stopped: `jms-bridge topology reset {name}` reads all topics again from their "
        f"beginning; `jms-bridge topology migrate MODULE:FUNCTION {drops}` begins these nodes with empty state and "
        "reads on. Topics that are joined need equal numbers"
    )


@dataclass(slots=True)
class InputWatch:
    """Watch over the topics of a topology that runs, with a thread that asks Kafka every five seconds."""

    access: KafkaAccess
    name: str
    folder: Folder
    topics: Mapping[str, TopicFacts]
    """Topics with positions as they were when the run began."""
    tables: Mapping[str, TopicFacts]
    """Topics of global tables."""
    fixed: Mapping[str, Sequence[str]]
    """Nodes by topic whose number of partitions they depend on."""
    _kafka: KafkaOffsets | None = None
    _now: Mapping[str, TopicFacts] = field(default_factory=dict)
    _gone: frozenset[str] = frozenset()
    """Topics that were missing when Kafka was asked last."""
    _missing: frozenset[str] = frozenset()
    """Topics that were missing twice: a broker that has just restarted may not know its topics yet."""
    _stop: Event = field(default_factory=Event)
    _said: set[str] = field(default_factory=set)

    def start(self) -> None:
        """Starts the thread."""
        Thread(target=self._run, name="inputs", daemon=True).start()

    def close(self) -> None:
        """Ends the thread."""
        self._stop.set()

    def look(self) -> None:
        """Asks Kafka now; an outage changes nothing."""
        names = [*self.topics, *self.tables]
        try:
            self._kafka = self._kafka or KafkaOffsets(self.access)
            now = self._kafka.topics(names)
        except (KafkaUnavailableError, HardFailureError) as error:
            # The query notices an outage by itself, and ends.
            _log.debug("the topics were not looked at", topology=self.name, why=str(error))
            return
        gone = frozenset(names) - now.keys()
        self._missing, self._gone, self._now = gone & self._gone, gone, now

    def check(self) -> None:
        """Raises SetupError if a topic is another one now."""
        check_identity(self.name, self.folder, {topic: each.id for topic, each in self.topics.items()}, self._now)

    def restart(self) -> str:
        """Reason for which the query has to start again to read all topics, in one line; empty if it reads all."""
        for topic, before in {**self.topics, **self.tables}.items():
            now = self._now.get(topic)
            if now is None or topic in self.fixed:
                continue
            if now.partitions > before.partitions:
                return f"topic '{topic}' has {now.partitions} partitions in place of {before.partitions}: reading all"
            if topic in self.tables and now.id != before.id:
                return f"topic '{topic}' was deleted and created again: reading its table anew"
        return ""

    def trouble(self) -> str:
        """Faults of topics that the run cannot repair, in one line; empty if there is none. Each is logged once."""
        faults = [f"topic '{topic}' is missing" for topic in sorted(self._missing)]
        for topic, nodes in self.fixed.items():
            before, now = self.topics.get(topic), self._now.get(topic)
            if before is not None and now is not None and now.partitions > before.partitions:
                faults.append(growth_refusal(self.name, topic, before.partitions, now.partitions, nodes))
        for fault in faults:
            if fault not in self._said:
                _log.warning("a topic of the topology has changed", topology=self.name, what=fault)
        self._said = set(faults)
        return "; ".join(faults)

    def _run(self) -> None:
        while not self._stop.wait(_LOOK_SECONDS):
            self.look()


def _named(topics: Collection[str]) -> str:
    names = ", ".join(f"'{topic}'" for topic in topics)
    return f"topics {names}" if len(topics) > 1 else f"topic {names}"
