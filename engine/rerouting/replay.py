"""Replay of journal records: each is written to the journal again, so that the present routes take it.

The copy has a header with the position that it repeats, and is one Kafka transaction with an entry in the audit
(`engine.dead_letters.audit`) under that position. So both are there or neither, and a position that is in the audit is
not repeated again. It shares the producer of `engine.dead_letters`: of two replays at once the later one goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, NamedTuple

from engine.dead_letters.audit import Action, Actor, AuditEntry, now, settled
from engine.dead_letters.pace import BatchShare, batches
from engine.dead_letters.replay import ReplayOutcome
from engine.dead_letters.replay_producer import ReplayProducer
from engine.dead_letters.store import DeadLetterStore
from engine.errors import UsageError
from engine.explain import Ending, explain
from engine.kafka.offsets import KafkaOffsets
from engine.kafka.reader import KafkaTopicReader
from engine.kafka.topics import ensure_audit_topic, exists
from engine.message import COPY_OF, Message, sized
from engine.rerouting.selection import JournalSelection, UnroutedRecords, selected
from engine.router.past_routes import routes_text
from engine.router.position_store import PositionStore
from engine.schemas.documents import documents_of
from engine.schemas.route_schemas import route_schemas
from engine.telemetry.metrics import UNMATCHED
from routes.predicate.nodes import ADDRESS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.kafka.reader import LocatedRecord, Position
    from engine.message import Record
    from engine.router.position_store import NotedStart
    from routes.model import Config

__all__ = ["JournalReplay", "Rerouted", "ReroutedRow", "ReroutingOptions", "ReroutingTable", "copy_of"]

_MOST_ROWS, _MOST_TEXT = 1000, 200
_OTHERS = "(others)"
_WHY = {
    UNMATCHED: "no route takes it",
    "expired": "it has expired, so it would not be routed",
    "own-origin": "this bridge has routed it before, and drops what comes back",
    "non-durable": "it is not durable, and routing.non-durable drops it",
}


@dataclass(frozen=True, slots=True)
class ReroutingOptions:
    """The records to route again, and the manner."""

    selection: JournalSelection
    again: bool = False
    """True for a further copy of records that were replayed before."""
    most: int | None = None
    """Greatest number of copies; None for no limit."""
    per_second: float | None = None
    """Greatest number of copies a second; None for no limit."""
    actor: Actor = field(default_factory=Actor.here)


@dataclass(frozen=True, slots=True)
class Rerouted:
    """A selected journal record and its outcome."""

    position: Position
    outcome: ReplayOutcome
    time_ms: int
    """Kafka's timestamp of the record, in milliseconds since 1970."""
    address: str
    """Address of the message; empty for a message without one."""
    routes: tuple[str, ...] = ()
    """Names of the routes that take it now."""
    detail: str = ""
    """Position of the copy, `topic:partition:offset`, or the reason why there is none."""


class _Judged(NamedTuple):
    """A record with its outcome as far as it is known before the transaction."""

    located: LocatedRecord
    rerouted: Rerouted

    @property
    def moves(self) -> bool:
        """True if the record is to be copied."""
        return self.rerouted.outcome is ReplayOutcome.WOULD_REPLAY

    def share(self) -> BatchShare | None:
        """Returns its share in a transaction; None if it is not to be copied."""
        return BatchShare(self.located.record.size) if self.moves else None


class JournalReplay:
    """Replay of the records of one bridge's journal.

    Raises:
        UsageError: the selection is wrong, another replay took over, or the router has other routes than the file.
        HardFailureError: Kafka does not let this user read or write.
        UnreachableError: Kafka does not answer.
    """

    def __init__(self, config: Config, options: ReroutingOptions) -> None:
        options.selection.check()
        self._config = config
        self._options = options
        self._store = DeadLetterStore.of(config)
        self._kafka = KafkaOffsets(self._store.kafka)
        self._documents = documents_of(config)
        self._journal_id = self._kafka.identity(config.journal.topic)
        self._starts = self._noted_starts()
        self._unrouted = UnroutedRecords(config, self._starts, self._documents)

    @property
    def unknown(self) -> int:
        """Number of records of the last reading for which the routes of their time are not known."""
        return self._unrouted.unknown

    def survey(self, report: Callable[[int, int], None] = lambda _read, _total: None) -> Iterator[Rerouted]:
        """Yields the outcome that each selected record would have; changes nothing.

        `report` is called with the numbers of records that are read, and that are to be read.
        """
        with KafkaTopicReader(self._store.kafka, self._config.journal.topic) as reader:
            for judged in self._judged(reader, report):
                yield judged.rerouted

    def run(self, stop: Event) -> Iterator[Rerouted]:
        """Copies the selected records, and yields the outcome of each after its transaction is committed.

        After an error the records not reported have no copy. When `stop` is set, the transaction under way is
        completed and reported, and no other is begun.
        """
        self._check_routes()
        ensure_audit_topic(self._store.kafka, self._store.topic, self._store.journal.replication)
        producer = ReplayProducer(self._store, "a journal record")
        journal, options = self._config.journal.topic, self._options
        with KafkaTopicReader(self._store.kafka, journal, scattered=bool(options.selection.positions)) as reader:
            judged_all = self._judged(reader, lambda _read, _total: None)
            for batch in batches(judged_all, _Judged.share, options.per_second, options.most, stop):
                copies = self._write(producer, [judged.located for judged in batch if judged.moves])
                for judged in batch:
                    rerouted = judged.rerouted
                    if judged.moves:
                        rerouted = replace(
                            rerouted, outcome=ReplayOutcome.REPLAYED, detail=copies[judged.located.position]
                        )
                    yield rerouted

    def _noted_starts(self) -> Sequence[NotedStart]:
        config = self._config
        if not exists(self._store.kafka, config.journal.state_topic):
            return ()  # The router has never run.
        notes = PositionStore(self._store.kafka, config.bridge_id, config.journal)
        return notes.starts(self._store.keys(), self._journal_id)

    def _check_routes(self) -> None:
        if self._starts and self._starts[-1].start.routes != routes_text(self._config.text):
            msg = (
                f"the bridge routes by other routes than those in {self._config.path}, so that copies would go "
                "elsewhere: reload or start it first (jms-bridge reload)"
            )
            raise UsageError(msg)

    def _judged(self, reader: KafkaTopicReader, report: Callable[[int, int], None]) -> Iterator[_Judged]:
        self._unrouted.unknown = 0
        selection = self._options.selection
        where, bounds = selection.where, self._config.routing.bounds
        noted = settled(self._store, reader.topic, self._journal_id, reader.bounds())
        done = {position: entry for position, entry in noted.items() if entry.action is not Action.SENT}

        def takes(message: Message) -> bool:
            return where is None or replace(message, documents=self._documents, bounds=bounds).fulfils(where)

        for located in selected(selection, reader, self._kafka, takes, self._unrouted, report):
            yield _Judged(located, self._verdict(located, done.get(located.position)))

    def _verdict(self, located: LocatedRecord, entry: AuditEntry | None) -> Rerouted:
        explanation = explain(
            located.record,
            self._config,
            position=str(located.position),
            documents=self._documents,
            schemas=route_schemas(self._config),
        )
        names = dict.fromkeys(each.route.name for each in explanation.publications if each.route)
        address = explanation.message.text_of(ADDRESS) or ""
        found = Rerouted(
            located.position, ReplayOutcome.WOULD_REPLAY, located.time_ms, address[:_MOST_TEXT], tuple(names)
        )
        if entry is not None and not self._options.again:
            if entry.is_doubtful:
                detail = "the audit has a note about it that this bridge has not sealed; --again replays it"
                return replace(found, outcome=ReplayOutcome.NOT_REPLAYABLE, detail=detail)
            return replace(found, outcome=ReplayOutcome.ALREADY_REPLAYED, detail=entry.copy)
        if explanation.ending is Ending.COUNTED:
            why = _WHY.get(explanation.reason, explanation.reason)
            return replace(found, outcome=ReplayOutcome.NOT_REPLAYABLE, detail=why)
        return found

    def _write(self, producer: ReplayProducer, records: Sequence[LocatedRecord]) -> dict[Position, str]:
        """Writes copies and their audit entries in one transaction; returns the position of each copy."""
        copies: dict[Position, str] = {}
        if not records:
            return copies
        with producer.transaction():
            for located in records:
                tell = partial(copies.__setitem__, located.position)
                producer.copy(self._config.journal.topic, copy_of(located), tell)
            producer.flush()
            producer.note(self._entry(located.position, copies[located.position]) for located in records)
        return copies

    def _entry(self, position: Position, copy: str) -> AuditEntry:
        actor, journal_id = self._options.actor, self._journal_id
        return AuditEntry(
            position, Action.ROUTED_AGAIN, now(), copy, journal=str(position), actor=actor, topic_id=journal_id
        )


def copy_of(located: LocatedRecord) -> Record:
    """Returns the journal record that repeats another one, and names its position."""
    record = located.record
    headers = tuple(header for header in record.headers if header[0] != COPY_OF)
    return sized(replace(record, headers=(*headers, (COPY_OF, str(located.position).encode()))))


@dataclass(slots=True)
class ReroutedRow:
    """Count and times of records with the same address, routes and outcome."""

    address: str
    routes: tuple[str, ...]
    outcome: ReplayOutcome
    detail: str
    count: int
    oldest_ms: int
    newest_ms: int


class ReroutingTable:
    """Counts of records by address, routes and outcome, in bounded memory."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, tuple[str, ...], str, str], ReroutedRow] = {}

    def add(self, each: Rerouted) -> None:
        """Counts one record."""
        detail = each.detail if each.outcome is ReplayOutcome.NOT_REPLAYABLE else ""
        key = (each.address, each.routes, str(each.outcome), detail)
        if key not in self._rows and len(self._rows) >= _MOST_ROWS:
            key = (_OTHERS, (), str(each.outcome), "")
        row = self._rows.setdefault(
            key, ReroutedRow(key[0], key[1], each.outcome, key[3], 0, each.time_ms, each.time_ms)
        )
        row.count += 1
        row.oldest_ms, row.newest_ms = min(row.oldest_ms, each.time_ms), max(row.newest_ms, each.time_ms)

    @property
    def rows(self) -> list[ReroutedRow]:
        """The rows, the largest first."""
        return sorted(self._rows.values(), key=lambda row: (-row.count, row.address, row.routes, row.outcome))

    def count(self, outcome: ReplayOutcome) -> int:
        """Returns the number of records with an outcome."""
        return sum(row.count for row in self._rows.values() if row.outcome is outcome)
