"""Search for records in all topics of a bridge: what it finds, the newest first, and how far it has come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import UsageError
from engine.find.header_names import header_names
from engine.find.id_filters import IdFilters
from engine.find.places import SearchedOffsets, searched_topics, topic_kinds
from engine.find.scanner import ScannedStretch, Scanner
from engine.find.stretches import NOTHING_READ, Amounts, SearchState
from engine.kafka.clients import KafkaClients
from engine.kafka.offsets import KafkaOffsets
from engine.kafka.topics import BridgeTopics
from engine.times import iso

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from threading import Event

    from engine.find.question import FindQuestion, TopicKind
    from engine.find.stretches import Ranges
    from engine.kafka.offsets import Place
    from engine.kafka.reader import LocatedRecord
    from routes.model import Config

__all__ = ["FindProgress", "FoundRecord", "find"]


@dataclass(frozen=True, slots=True)
class FoundRecord:
    """Record that a search has found."""

    kind: TopicKind
    """Kind of the topic that has it."""
    located: LocatedRecord

    def text(self, name: str) -> str:
        """Returns the text of a JMS field, property or header; empty if the record has none."""
        texts = map(self.located.record.header, header_names(name))
        return next(filter(None, texts), "")


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
    excluded: int = 0
    """Offsets that need not be read, since filters say that no record there has the id; they are not in `read`."""
    notes: tuple[str, ...] = ()
    """Sentences about what the question is about and was not read, such as records of an open transaction."""

    def summary(self, question: FindQuestion) -> str:
        """Returns what was read and found in words: `12,400,000 of 12,400,000 records …; 3 found`."""
        amount = f"{self.read:,} of {self.total:,} "
        amount += "records" if self.records == self.read else f"offsets, which have {self.records:,} records"
        amount += "" if question.since is None else f" from {iso(question.since)}"
        amount += "" if question.until is None else f" to {iso(question.until)}"
        amount += f"; {self.excluded:,} cannot have the id" if self.excluded else ""
        amount += f"; retention removed {self.removed:,} before they were read" if self.removed else ""
        return f"{amount}; {self.found:,} found"


def find(config: Config, question: FindQuestion, stop: Event) -> Iterator[FoundRecord | FindProgress]:
    """Yields the records that a question asks for, and in between and at the end the progress.

    It reads backwards in stretches of all partitions, and gives what a stretch has, the newest first. It ends when it
    has given `question.most` records, when everything is read, or after `stop` is set.

    Raises:
        PredicateError: `question.where` breaks the routing language.
        UsageError: `question.resume` belongs to another question, or a topic does not belong to the bridge.
        HardFailureError: Kafka refuses access.
        SetupError: Java is missing or too old.
        UnreachableError: Kafka does not answer.
    """
    known = topic_kinds(config, BridgeTopics(config).routes())
    topics = searched_topics(known, question)
    notes: tuple[str, ...] = ()
    kafka = KafkaOffsets(KafkaClients(config.kafka_access))
    filters = IdFilters.opened(config.embedded.data, kafka, known)
    # The process starts while Kafka is asked for offsets.
    with Scanner(config, question, filters) as scanner:
        if question.resume is None:
            offsets = SearchedOffsets.of(kafka, topics, question)
            left = _without_excluded(offsets.ranges, question, filters)
            state, notes = SearchState.begin(left, _size(offsets.ranges) - _size(left)), offsets.notes
        else:
            state = _resumed(question.resume, question, topics)
        search = _Search(topics, question, state, notes)
        yield search.progress()
        yield from search.run(scanner, stop)


def _resumed(token: str, question: FindQuestion, topics: Mapping[str, TopicKind]) -> SearchState:
    state = SearchState.of_token(token, question.digest)
    if gone := {topic for topic, _ in state.left} - topics.keys():
        msg = f"the token is about topic '{min(gone)}', which the bridge does not have any more; search without it"
        raise UsageError(msg)
    return state


def _without_excluded(
    ranges: Mapping[Place, Ranges], question: FindQuestion, filters: IdFilters | None
) -> Mapping[Place, Ranges]:
    """The ranges without those parts that cannot have the ids of a question."""
    given = (question.message_id, question.correlation_id, question.either_id)
    ids = tuple(each for each in given if each is not None)
    if filters is None or not ids:
        return ranges
    return {place: filters.left(place, of, ids) for place, of in ranges.items()}


def _size(ranges: Mapping[Place, Ranges]) -> int:
    return sum(end - start for of in ranges.values() for start, end in of)


class _Search:
    """A search under way."""

    def __init__(
        self, topics: Mapping[str, TopicKind], question: FindQuestion, state: SearchState, notes: tuple[str, ...]
    ) -> None:
        self._topics = topics
        self._question = question
        self._state = state
        self._notes = notes

    def run(self, scanner: Scanner, stop: Event) -> Iterator[FoundRecord | FindProgress]:
        """Reads stretch after stretch until enough is found, nothing is left, or `stop` is set."""
        enough = self._state.found + self._question.most
        while self._state.left and self._state.found < enough and not stop.is_set():
            wanted, given_in_part = enough - self._state.found, NOTHING_READ
            for each in scanner.scan(self._state.pieces(), wanted, self._state.after):
                if isinstance(each, Amounts):
                    if stop.is_set():
                        break
                    yield self.progress(each)
                elif isinstance(each, ScannedStretch):
                    if each.leaves_some:
                        given_in_part = each.amounts
                    else:
                        self._state = self._state.read(each.amounts)
                else:
                    at = each.position
                    self._state = self._state.given((each.time_ms, at.topic, at.partition, at.offset))
                    yield FoundRecord(self._topics[at.topic], each)
            yield self.progress(given_in_part)

    def progress(self, more: Amounts = NOTHING_READ) -> FindProgress:
        """The progress, with the amounts of the stretch under way, which `resume` reads again."""
        state = self._state
        amounts, done = state.amounts.plus(more), not state.left
        return FindProgress(
            amounts.read,
            state.total,
            state.found,
            None if done else state.token(self._question.digest),
            done,
            amounts.records,
            amounts.removed,
            state.excluded,
            self._notes,
        )
