"""Messages that Kafka does not take, as the router knows of them when it begins: whole topics, and single messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["NO_REFUSALS", "Refusals"]


@dataclass(frozen=True, slots=True)
class Refusals:
    """Reasons for which messages cannot be published, each in one line that names the topic."""

    topics: Mapping[str, str] = field(default_factory=dict)
    """Reason by topic, for topics that take no records."""
    messages: Mapping[tuple[int, int, int], str] = field(default_factory=dict)
    """Reason by journal partition, offset and copy, for messages that Kafka has refused."""

    def __bool__(self) -> bool:
        """True if there is one."""
        return bool(self.topics or self.messages)


NO_REFUSALS = Refusals()
"""Kafka takes all messages, as far as is known."""
