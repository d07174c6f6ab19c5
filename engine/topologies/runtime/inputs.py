"""Watch over the topics that a topology reads, which may change while it runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Event, Thread
from typing import TYPE_CHECKING

import structlog

from engine.errors import HardFailureError
from engine.kafka.errors import KafkaUnavailableError
from engine.topologies.runtime.kept import check_identity, growth_refusal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.kafka.offsets import KafkaOffsets, TopicFacts
    from engine.spark.stored_files import Folder

__all__ = ["InputWatch"]

_LOOK_SECONDS = 5.0
_JOIN_SECONDS = 15.0

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class InputWatch:
    """Watch over the topics of a topology that runs, with a thread that asks Kafka every five seconds."""

    kafka: KafkaOffsets
    name: str
    folder: Folder
    topics: Mapping[str, TopicFacts]
    """Topics with positions as they were when the run began."""
    tables: Mapping[str, TopicFacts]
    """Topics of global tables."""
    fixed: Mapping[str, Sequence[str]]
    """Nodes by topic whose number of partitions they depend on."""
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
            now = self.kafka.topics(names)
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
