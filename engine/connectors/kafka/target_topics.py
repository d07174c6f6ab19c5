"""Topics of another Kafka cluster that a sink writes to: which of them it can never write to at present."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from engine.connectors.kafka.settings import ADDRESSES
from engine.kafka.cluster import describe, problems_of_access
from engine.kafka.errors import OF_A_RECORD, remedy
from engine.kafka.types import KafkaError, KafkaException

if TYPE_CHECKING:
    from engine.kafka.clients import KafkaClients
    from engine.kafka.types import AdminClient

__all__ = ["TargetTopics"]

_ANSWER_SECONDS = 5.0
_CLOSED_SECONDS = 5.0
"""Time for which messages to a topic are refused without another question."""


class TargetTopics:
    """Topics of one connection; the writers of several partitions share it."""

    def __init__(self, kafka: KafkaClients) -> None:
        """Sets up the topics without connecting."""
        self._kafka = kafka
        self._lock = threading.Lock()
        self._there: set[str] = set()
        self._closed: dict[str, tuple[str, float]] = {}
        """By topic: the reason why it cannot be written to, and the time until which that holds."""
        self._client: AdminClient | None = None

    def fault(self, topic: str) -> str | None:
        """Returns the reason why messages to a topic are refused, in one line; None if they are not, or may not be.

        Kafka's client itself waits long for a topic that is missing, or may not be written.
        """
        with self._lock:
            if topic in self._there:
                return None
            why, until = self._closed.get(topic, ("", 0.0))
            if time.monotonic() < until:
                return why
            if not ADDRESSES.allow(topic):
                return f"'{topic[:100]}' is not a topic to write to"
            self._client = self._client or self._kafka.admin()
            try:
                found = describe(self._client, [topic], _ANSWER_SECONDS)[topic]
            except KafkaException:
                return None
            if not isinstance(found, KafkaError):
                if problems := problems_of_access(topic, "", found, ("WRITE",)):
                    return self._close(topic, f"Kafka refuses it for topic '{topic}': {problems[0].what}")
                self._there.add(topic)
                return None
        return self.refusal(topic, found)

    def refusal(self, topic: str, error: KafkaError) -> str | None:
        """Returns the reason why Kafka refuses a message to a topic, in one line; None for a reason that may pass."""
        if error.code() not in OF_A_RECORD:
            return None
        why = f"Kafka refuses it for topic '{topic}': {remedy(error, 'WRITE') or error.str()} ({error.name()})"
        if OF_A_RECORD[error.code()]:
            with self._lock:
                self._there.discard(topic)
                self._close(topic, why)
        return why

    def _close(self, topic: str, why: str) -> str:
        self._closed[topic] = why, time.monotonic() + _CLOSED_SECONDS
        return why
