"""Settling of dead letters: sends each back through the journal once, or notes that it is no longer needed.

A replay writes the original into the journal and, in the same Kafka transaction, an entry into the audit
(`engine.dead_letters.audit`) under the dead letter's position. So both are there or neither, and a dead letter whose
position is in the audit is not replayed again; nor is another letter of the same message and failure
(`DeadLetter.origin`). A message that keeps failing does not go round for ever: after `routing.max-replays` it is put
into quarantine, a topic of dead letters like the first, in the same manner.
"""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import takewhile
from threading import Event
from typing import TYPE_CHECKING, NamedTuple

from engine.claims.bodies import BodyLostError, KeptBodies
from engine.dead_letters.audit import Action, Actor, AuditEntry, settled
from engine.dead_letters.correction import Correction
from engine.dead_letters.letter import DeadLetter, Filters
from engine.dead_letters.pace import BatchShare, batches
from engine.dead_letters.state import LetterState
from engine.dead_letters.transactions import Move, Transactions
from engine.errors import UsageError
from engine.kafka.reader import KafkaTopicReader
from engine.kafka.topics import ensure_audit_topic, exists, identity
from engine.message import Message
from engine.times import iso

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from engine.dead_letters.search import Summary
    from engine.dead_letters.store import DeadLetterStore
    from engine.kafka.reader import LocatedRecord, Position
    from engine.message import Record

    Report = Callable[[int, int], None]

__all__ = [
    "Group",
    "Histogram",
    "HistogramRow",
    "LetterVerdict",
    "Options",
    "ReplayOutcome",
    "Replayed",
    "SettledLetters",
    "commit",
    "discard",
    "replay",
    "replay_judge",
    "retry_due",
    "retry_ms",
    "state_reader",
]

_REPORT_EVERY = 1000
_MOST_ROWS = 1000
_OTHERS = "(others)"
"""Row for reasons and routes beyond `_MOST_ROWS`: any writer of the topic chooses them, so there may be any number."""


class ReplayOutcome(StrEnum):
    """Outcome of the attempt to settle one dead letter."""

    REPLAYED = "replayed"
    WOULD_REPLAY = "would replay"
    ALREADY_REPLAYED = "already replayed"
    NOT_REPLAYABLE = "not replayable"
    QUARANTINED = "quarantined"
    WOULD_QUARANTINE = "would quarantine"
    ALREADY_QUARANTINED = "already quarantined"
    DISCARDED = "discarded"
    WOULD_DISCARD = "would discard"
    ALREADY_DISCARDED = "already discarded"


_DONE = {
    Action.REPLAYED: (ReplayOutcome.WOULD_REPLAY, ReplayOutcome.REPLAYED, ReplayOutcome.ALREADY_REPLAYED),
    Action.QUARANTINED: (ReplayOutcome.WOULD_QUARANTINE, ReplayOutcome.QUARANTINED, ReplayOutcome.ALREADY_QUARANTINED),
    Action.DISCARDED: (ReplayOutcome.WOULD_DISCARD, ReplayOutcome.DISCARDED, ReplayOutcome.ALREADY_DISCARDED),
    Action.ROUTED_AGAIN: (ReplayOutcome.WOULD_REPLAY, ReplayOutcome.REPLAYED, ReplayOutcome.ALREADY_REPLAYED),
    Action.SENT: (ReplayOutcome.WOULD_REPLAY, ReplayOutcome.REPLAYED, ReplayOutcome.ALREADY_REPLAYED),
}
"""Outcomes by action: in a dry run, when it is done now, and if it was done before."""


@dataclass(frozen=True, slots=True)
class Options:
    """Selection of the dead letters to settle, and how to settle them; by default all are taken."""

    filters: Filters = field(default_factory=Filters)
    quarantine: bool = False
    """Take the letters from the quarantine."""
    force: bool = False
    """Replay also letters that were replayed too often, or discarded."""
    most: int | None = None
    """Stop after so many letters."""
    per_second: float | None = None
    """Greatest number of letters a second."""
    correction: Correction = field(default_factory=Correction)
    """Changes to the messages that are replayed."""
    actor: Actor = field(default_factory=Actor.here)
    state: LetterState | None = None
    """Take only letters in this state; None for any."""
    ends: Mapping[int, int] | None = None
    """Offsets behind the last letter to take, by partition; None for all that are there."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """A dead letter and its outcome."""

    letter: DeadLetter
    outcome: ReplayOutcome
    detail: str = ""
    """Position of the copy in the journal or quarantine (`topic:partition:offset`), or why there is none."""

    @property
    def position(self) -> Position:
        """Position of the dead letter."""
        return self.letter.position


def replay(
    store: DeadLetterStore,
    positions: Sequence[Position] | None,
    *,
    dry_run: bool = False,
    options: Options | None = None,
    stop: Event | None = None,
    report: Report = lambda _read, _total: None,
) -> Iterator[Replayed]:
    """Sends dead letters back into the journal, those at `positions` or (None) all, and yields the outcome of each.

    A dead letter is reported after its transaction is committed; after an error the letters not reported are not
    replayed. When `stop` is set, the transaction under way is completed and reported, and no other is begun. `report`
    is called with the number of offsets that are read, and that are to be read.

    Raises:
        UsageError: a position or the dead-letter topic does not exist, or another replay took over.
        HardFailureError: Kafka does not let this user write.
        UnreachableError: Kafka does not answer, or the folder of bodies cannot be read.
    """
    options = options or Options()
    with closing(store.bodies()) as bodies:
        replayable = replay_judge(store, options, bodies)

        def judge(letter: DeadLetter, entry: AuditEntry | None) -> LetterVerdict:
            verdict = replayable(letter, entry)
            if verdict.action is Action.REPLAYED and entry is None and (due := retry_due(letter, store.retries)):
                # Two that replay the same letter at once could send it twice. Letters with an entry are not retried.
                return LetterVerdict(outcome=ReplayOutcome.NOT_REPLAYABLE, detail=due)
            return verdict

        yield from _settle(store, positions, judge, dry_run, options, stop or Event(), report, bodies)


def replay_judge(
    store: DeadLetterStore, options: Options, bodies: KeptBodies
) -> Callable[[DeadLetter, AuditEntry | None], LetterVerdict]:
    """Makes the function that says of a letter, with its audit entry, whether it can be replayed; else why not."""

    def judge(letter: DeadLetter, entry: AuditEntry | None) -> LetterVerdict:
        verdict = _judged(letter, entry, options, store.max_replays)
        if verdict.action is not Action.REPLAYED:
            return verdict
        if letter.publication and store.publication(letter) is None:
            return LetterVerdict(outcome=ReplayOutcome.NOT_REPLAYABLE, detail=_no_publication(letter))
        record = letter.located.record
        try:
            return replace(verdict, size=len(bodies.body(record.value, record.headers) or b""))
        except BodyLostError as error:
            return LetterVerdict(outcome=ReplayOutcome.NOT_REPLAYABLE, detail=str(error))

    return judge


def discard(
    store: DeadLetterStore,
    positions: Sequence[Position] | None,
    *,
    dry_run: bool = False,
    options: Options | None = None,
    stop: Event | None = None,
    report: Report = lambda _read, _total: None,
) -> Iterator[Replayed]:
    """Notes in the audit that these dead letters are no longer needed; otherwise like `replay`.

    They stay in their topic.
    """

    def judge(letter: DeadLetter, entry: AuditEntry | None) -> LetterVerdict:
        is_open = entry is None or not entry.settles(has_seal=letter.has_seal)
        return LetterVerdict(Action.DISCARDED) if entry is None or is_open else _past(entry)

    return _settle(store, positions, judge, dry_run, options or Options(), stop or Event(), report)


def state_reader(
    store: DeadLetterStore, topic: str, bounds: Mapping[int, tuple[int, int]], wanted: Collection[Position] | None
) -> Callable[[DeadLetter], LetterState]:
    """Makes the function that returns the state of a letter of a topic.

    Args:
        store: names the audit topic.
        topic: topic of the dead letters, or the quarantine.
        bounds: first offset and end of each partition of the topic, see `settled`.
        wanted: positions of the letters that the function is called with; None for any.
    """
    entries = settled(store, topic, identity(store.kafka, topic), bounds, wanted)

    def state(letter: DeadLetter) -> LetterState:
        return _state(letter, entries.get(letter.position))

    return state


def _state(letter: DeadLetter, entry: AuditEntry | None) -> LetterState:
    """The state of a letter with that entry, if the entry is its own one."""
    is_settled = entry is not None and entry.position == letter.position and entry.settles(has_seal=letter.has_seal)
    return entry.state if entry is not None and is_settled else LetterState.OPEN


@dataclass(frozen=True, slots=True)
class LetterVerdict:
    """The action to take on a dead letter, or the outcome that says why there is none."""

    action: Action | None = None
    outcome: ReplayOutcome | None = None
    detail: str = ""
    twin: AuditEntry | None = None
    """Entry of another letter of the same origin that was settled before."""
    size: int = 0
    """Bytes of the body that goes into the journal; the letter may have only a claim on it."""


class SettledLetters:
    """The audit entries of letters settled before, and in this run."""

    def __init__(self, entries: Iterable[AuditEntry] = ()) -> None:
        self._by_position: dict[Position, AuditEntry] = {}
        self._by_origin: dict[str, AuditEntry] = {}
        for entry in entries:
            self.note(entry)

    def note(self, entry: AuditEntry) -> None:
        """Adds an entry, which letters of the same origin share. A doubtful entry does not replace another one."""
        if _replaces(entry, self._by_position.get(entry.position)):
            self._by_position[entry.position] = entry
        if entry.origin and _replaces(entry, self._by_origin.get(entry.origin)):
            self._by_origin[entry.origin] = entry

    def entry(self, letter: DeadLetter) -> AuditEntry | None:
        """Returns the entry of the letter, else that of another letter of its origin."""
        own_entry, twin = self._by_position.get(letter.position), self._by_origin.get(letter.origin)
        return (
            twin
            if own_entry is None or (own_entry.is_doubtful and twin is not None and not twin.is_doubtful)
            else own_entry
        )


def _replaces(entry: AuditEntry, known: AuditEntry | None) -> bool:
    return not (entry.is_doubtful and known is not None and not known.is_doubtful)


def _settle(
    store: DeadLetterStore,
    positions: Sequence[Position] | None,
    judge: Callable[[DeadLetter, AuditEntry | None], LetterVerdict],
    dry_run: bool,
    options: Options,
    stop: Event,
    report: Report,
    bodies: KeptBodies | None = None,
) -> Iterator[Replayed]:
    topic = store.source(quarantine=options.quarantine)
    _check(positions, topic, store.quarantine)
    if options.quarantine and positions is None and not exists(store.kafka, topic):
        return  # No letter was ever put into quarantine.
    with KafkaTopicReader(store.kafka, topic, scattered=positions is not None) as reader:
        located = takewhile(lambda _: not stop.is_set(), _select(reader, positions, options.ends, report))
        letters: Iterable[DeadLetter] = filter(options.filters.takes, map(DeadLetter, located))
        origins: Collection[str] = ()
        if positions is not None:
            letters = list(letters)
            origins = {letter.origin for letter in letters} - {""}
        topic_id = identity(store.kafka, topic)

        def done_before() -> SettledLetters:
            return SettledLetters(settled(store, topic, topic_id, reader.bounds(), positions, origins).values())

        if dry_run:
            done = done_before()
            judged = _judged_all(letters, judge, done, options.state)
            yield from (_predicted(letter, verdict, done) for letter, verdict in judged)
            return
        ensure_audit_topic(store.kafka, store.topic, store.journal.replication)
        kept = bodies or KeptBodies(None)
        transactions = Transactions(store, options.actor, topic_id, kept, options.correction)
        # Read only now: making the producer has ended whatever an earlier replay left open.
        done = done_before()
        judged = _judged_all(letters, judge, done, options.state)
        for batch in batches(judged, _share, options.per_second, options.most, stop):
            yield from commit(transactions, batch, done)


def _judged_all(
    letters: Iterable[DeadLetter],
    judge: Callable[[DeadLetter, AuditEntry | None], LetterVerdict],
    done: SettledLetters,
    state: LetterState | None,
) -> Iterator[tuple[DeadLetter, LetterVerdict]]:
    for letter in letters:
        entry = done.entry(letter)
        if state is not None and _state(letter, entry) is not state:
            continue
        verdict = judge(letter, entry)
        is_twin = entry is not None and entry.position != letter.position and verdict.outcome is _DONE[entry.action][2]
        yield letter, replace(verdict, twin=entry) if is_twin else verdict


def _share(judged: tuple[DeadLetter, LetterVerdict]) -> BatchShare | None:
    letter, verdict = judged
    if verdict.action is None:
        return None
    # A letter that goes into quarantine puts no load on the router, and does not count towards the letters asked for.
    return BatchShare(max(letter.located.record.size, verdict.size), verdict.action is not Action.QUARANTINED)


def commit(
    transactions: Transactions, batch: Sequence[tuple[DeadLetter, LetterVerdict]], done: SettledLetters
) -> Iterator[Replayed]:
    """Settles letters in one transaction by their verdicts, notes them in `done`, and yields the outcomes."""
    moves = [Move(letter, verdict.action) for letter, verdict in batch if verdict.action is not None]
    moves += [Move(letter, verdict.twin.action, verdict.twin) for letter, verdict in batch if verdict.twin is not None]
    entries = transactions.settle(moves)
    for letter, verdict in batch:
        if verdict.outcome is not None:
            yield Replayed(letter, verdict.outcome, verdict.detail)
            continue
        entry, before = entries[letter.position], done.entry(letter)
        # Of two letters of one origin in a batch the first one is sent.
        is_first = before is None or before.position == letter.position or before.position not in entries
        done.note(entry)
        yield Replayed(letter, _DONE[entry.action][1 if is_first else 2], entry.copy)


def _predicted(letter: DeadLetter, verdict: LetterVerdict, done: SettledLetters) -> Replayed:
    if verdict.action is None:
        assert verdict.outcome is not None, "a verdict has an action or an outcome"
        return Replayed(letter, verdict.outcome, verdict.detail)
    done.note(AuditEntry(letter.position, verdict.action, origin=letter.origin))
    return Replayed(letter, _DONE[verdict.action][0])


def _check(positions: Sequence[Position] | None, topic: str, quarantine: str) -> None:
    for position in positions or ():
        if position.topic != topic:
            option = "; add --quarantine" if position.topic == quarantine else ""
            msg = f"{position}: dead letters are in '{topic}', not in '{position.topic}'{option}"
            raise UsageError(msg)


def _select(
    reader: KafkaTopicReader, positions: Sequence[Position] | None, ends: Mapping[int, int] | None, report: Report
) -> Iterator[LocatedRecord]:
    if positions is not None:
        for position in dict.fromkeys(positions):
            yield reader.at(position.partition, position.offset)
        return
    # A message that is replayed now and fails again comes back as a new dead letter, which this run must not replay.
    bounds = reader.bounds().items()
    last = {each: high if ends is None else min(high, ends.get(each, low)) for each, (low, high) in bounds}
    left = {each: low for each, (low, _) in bounds if low < last[each]}
    before, total = sum(left.values()), sum(last[each] for each in left) - sum(left.values())
    for number, located in enumerate(reader.read(dict(left), last)):
        if number % _REPORT_EVERY == 0:
            report(sum(left.values()) - before, total)
        left[located.position.partition] = located.position.offset + 1
        yield located
    report(total, total)


def _judged(letter: DeadLetter, entry: AuditEntry | None, options: Options, max_replays: int) -> LetterVerdict:
    if entry is not None and not entry.settles(has_seal=letter.has_seal):
        if not options.force:
            return LetterVerdict(outcome=ReplayOutcome.NOT_REPLAYABLE, detail=_doubt(entry))
    elif entry is not None and not (options.force and entry.action is Action.DISCARDED):
        return _past(entry)
    if letter.truncated and options.correction.body is None:
        return LetterVerdict(outcome=ReplayOutcome.NOT_REPLAYABLE, detail=_cut(letter))
    if _has_expired(options.correction.apply(letter.located.record)):
        detail = "it has expired since, so it would not be routed"
        return LetterVerdict(outcome=ReplayOutcome.NOT_REPLAYABLE, detail=detail)
    if letter.replays < max_replays or letter.is_held or options.force:
        return LetterVerdict(Action.REPLAYED)
    if options.quarantine:
        detail = f"it was replayed {letter.replays} times and failed again; --force replays it"
        return LetterVerdict(outcome=ReplayOutcome.NOT_REPLAYABLE, detail=detail)
    return LetterVerdict(Action.QUARANTINED)


def _doubt(entry: AuditEntry) -> str:
    return (
        f"the audit says it was {entry.action}, but this bridge has not sealed that entry: find out who writes to the "
        "audit, and look for the message in the journal; --force replays it, discard settles it"
    )


def _past(entry: AuditEntry) -> LetterVerdict:
    """Returns the verdict for a letter that was settled before."""
    by = f"by {entry.actor.user} on {entry.actor.host}, {entry.time}"
    return LetterVerdict(outcome=_DONE[entry.action][2], detail=by if entry.action is Action.DISCARDED else entry.copy)


def _has_expired(record: Record) -> bool:
    return 0 < Message.from_record(record).expiration_ms <= time.time() * 1000


def retry_ms(letter: DeadLetter | Summary, retries: Sequence[float]) -> int | None:
    """Time of the next retry of an open letter by `routing.retry`, in milliseconds since 1970; None if none is left."""
    return None if letter.replays >= len(retries) else letter.time_ms + round(retries[letter.replays] * 1000)


def retry_due(letter: DeadLetter, retries: Sequence[float]) -> str:
    """A sentence about the next replay of an open letter by the bridge itself; empty if there are none left."""
    if letter.is_held:
        return f"the bridge replays it by itself when route '{letter.route}' is no longer paused"
    due = retry_ms(letter, retries)
    if due is None:
        return ""
    attempt = f"retry {letter.replays + 1} of {len(retries)}"
    return f"the bridge replays it by itself after {iso(due)} ({attempt}, routing.retry)"


def _no_publication(letter: DeadLetter) -> str:
    return (
        f"it was for {letter.target}, which route '{letter.route}' does not have any more, and the other destinations "
        "of the message would get it twice. Put the destination back, or discard the letter"
    )


def _cut(letter: DeadLetter) -> str:
    if letter.journal_position:
        return f"its body was cut; the original ({letter.truncated} bytes) was at {letter.journal_position}"
    return f"its body was cut; the journal did not take the original ({letter.truncated} bytes)"


class Group(NamedTuple):
    """Key of a row: reason, route and outcome."""

    reason: str
    route: str
    """Name of the route; empty for none."""
    outcome: ReplayOutcome


@dataclass(slots=True)
class HistogramRow:
    """Count and times of the dead letters in one group."""

    count: int
    oldest_ms: int
    """Time of the first failure among them, in milliseconds since 1970."""
    newest_ms: int


class Histogram:
    """Counts of dead letters by group, in bounded memory."""

    def __init__(self) -> None:
        self._rows: dict[Group, HistogramRow] = {}

    def add(self, replayed: Replayed) -> None:
        """Counts one dead letter."""
        letter, time_ms = replayed.letter, replayed.letter.time_ms
        group = Group(letter.reason, letter.route, replayed.outcome)
        if group not in self._rows and len(self._rows) >= _MOST_ROWS:
            group = Group(_OTHERS, _OTHERS, replayed.outcome)
        row = self._rows.setdefault(group, HistogramRow(0, time_ms, time_ms))
        row.count += 1
        row.oldest_ms, row.newest_ms = min(row.oldest_ms, time_ms), max(row.newest_ms, time_ms)

    @property
    def rows(self) -> list[tuple[Group, HistogramRow]]:
        """Groups and their rows, the largest first."""
        return sorted(self._rows.items(), key=lambda item: (-item[1].count, item[0]))

    def count(self, *outcomes: ReplayOutcome) -> int:
        """Returns the number of dead letters with one of these outcomes."""
        return sum(row.count for group, row in self._rows.items() if group.outcome in outcomes)
