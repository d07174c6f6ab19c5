"""Search for records in all topics of a bridge: what it finds, the newest first, and how far it has come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from threading import Event

    from engine.find.question import FindQuestion, TopicKind
    from engine.kafka.reader import LocatedRecord
    from routes.model import Config

__all__ = ["FindProgress", "FoundRecord", "find"]


@dataclass(frozen=True, slots=True)
class FoundRecord:
    """Record that a search has found."""

    kind: TopicKind
    """Kind of the topic that has it."""
    located: LocatedRecord


@dataclass(frozen=True, slots=True)
class FindProgress:
    """Amounts that a search has read and found, those before its `resume` included."""

    read: int
    """Offsets that were read, with gaps, which have no record: of aborted transactions, or compacted away."""
    total: int
    """Offsets that the question is about."""
    found: int
    """Records that were found."""
    resume: str | None
    """Token with which the same question goes on from here; None after the end."""
    done: bool
    """True if everything was read that the question is about, and everything found was given."""
    records: int = 0
    """Records that were read."""
    removed: int = 0
    """Offsets that retention has removed before they were read; they are not in `read`."""
    notes: tuple[str, ...] = ()
    """Sentences about what the question is about and was not read, such as records of an open transaction."""


def find(config: Config, question: FindQuestion, stop: Event) -> Iterator[FoundRecord | FindProgress]:
    """Yields the records that a question asks for, and in between and at the end the progress.

    It reads backwards in stretches of all partitions, and gives what a stretch has, the newest first. It ends when it
    has given `question.most` records, when everything is read, or after `stop` is set.

    Raises:
        PredicateError: `question.where` is no predicate.
        UsageError: `question.resume` is not of this question, or a topic is none of the bridge.
        HardFailureError: Kafka refuses access.
        SetupError: Java is missing or too old.
        UnreachableError: Kafka does not answer.
    """
    raise NotImplementedError
