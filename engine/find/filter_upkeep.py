"""Upkeep of the filters of ids by a running bridge, so that even the first search for an id reads little.

A thread of the supervisor looks each minute, while the bridge leads, for whole blocks without a filter, and has a JVM
read them: on one core, with the lowest priority, and resting three times as long as it has read. So it takes at most a
quarter of a core, and nothing on a machine whose cores are busy.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import structlog

from engine.background import BackgroundTask, ErrorLog
from engine.errors import HardFailureError
from engine.find.id_filters import IdFilters
from engine.find.places import topic_kinds
from engine.find.question import FindQuestion
from engine.find.scanner import Scanner
from engine.find.section import FilterWriting, FindConfig
from engine.kafka.clients import KafkaClients
from engine.kafka.offsets import KafkaOffsets
from engine.kafka.topics import BridgeTopics

if TYPE_CHECKING:
    from collections.abc import Callable

    from routes.model import Config

__all__ = ["FilterUpkeep"]

_LOOK_SECONDS = 60.0
_REST = 3.0
"""Time of rest for each second of reading."""
_AT_ONCE = 64
"""Most blocks before the next look, so that newer ones come first."""
_JOIN_SECONDS = 8.0
_NOBODY = FindQuestion(until=0)
"""Question that no record answers."""

_log = structlog.get_logger(__name__)


class FilterUpkeep(BackgroundTask):
    """Writes the filters that are missing."""

    def __init__(self, config: Callable[[], Config], is_wanted: Callable[[], bool]) -> None:
        """Creates it for the configuration in force; nothing is written while `is_wanted` is false."""
        super().__init__("filters of ids", _JOIN_SECONDS)
        self._config = config
        self._is_wanted = is_wanted
        self._errors = ErrorLog(_log, "filters of ids cannot be written")
        self._refused: set[str] = set()
        """Topics that Kafka does not let this user read."""

    def run(self) -> None:
        """Looks each minute for blocks without a filter, while the bridge leads and is to write them."""
        while not self._stop.wait(_LOOK_SECONDS):
            config = self._config()
            if not self._is_wanted() or config.section(FindConfig).filters is not FilterWriting.BACKGROUND:
                continue
            try:
                self.write(config)
                self._errors.over()
            except Exception as error:
                # The end of the bridge kills the process that reads.
                if not self._stop.is_set():
                    self._errors.note(error)

    def write(self, config: Config) -> int:
        """Writes filters of blocks without one, the highest offsets first; returns their number.

        Raises:
            HardFailureError: Kafka refuses access; a topic that may not be read is left out from then on.
            SetupError: Java is missing or too old.
            UnreachableError: Kafka does not answer.
        """
        kafka = KafkaOffsets(KafkaClients(config.kafka_access))
        topics = topic_kinds(config, BridgeTopics(config).routes())
        filters = IdFilters.opened(config.embedded.data, kafka, topics)
        missing = filters.missing(kafka.starts(topics), kafka.ends(topics, committed=True)) if filters else []
        due = [piece for piece in missing if piece.topic not in self._refused][:_AT_ONCE]
        if not due:
            return 0
        with Scanner(config, _NOBODY, filters, calm=True) as scanner:
            for number, piece in enumerate(due):
                began = time.monotonic()
                try:
                    for _ in scanner.scan([piece], 1, None):
                        if self._stop.is_set():
                            return number
                except HardFailureError:
                    self._refused.add(piece.topic)
                    raise
                if self._stop.wait(_REST * (time.monotonic() - began)) or not self._is_wanted():
                    return number + 1
        _log.debug("filters of ids were written", blocks=len(due), missing=len(missing) - len(due))
        return len(due)
