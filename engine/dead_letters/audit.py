"""The audit of dead letters: which of them are settled, by whom, when, and how.

The audit is a compacted topic beside the dead letters, `<dead-letter topic>.replayed`. The key of a record is the
position of a dead letter, or of a journal record that a user has written (`engine.rerouting`); its value is JSON. Of
several records for one position the last one counts, of those with the bridge's seal if there are any (`engine.seals`).
Records that are not entries are skipped. `replay_producer` writes the audit.
"""

from __future__ import annotations

import getpass
import json
import os
import socket
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from engine.dead_letters.state import LetterState
from engine.errors import UsageError
from engine.kafka.reader import KafkaTopicReader, Position
from engine.kafka.topics import exists

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from engine.dead_letters.store import DeadLetterStore
    from engine.kafka.reader import LocatedRecord
    from engine.seals import SealKeys

__all__ = ["Action", "Actor", "AuditEntry", "AuditTail", "entries", "last", "now", "parse", "settled"]


class Action(StrEnum):
    """The action that settled a dead letter, or repeated a journal record."""

    REPLAYED = LetterState.REPLAYED.value
    QUARANTINED = LetterState.QUARANTINED.value
    """Replayed too often: a copy stands in the quarantine now, open again."""
    DISCARDED = LetterState.DISCARDED.value
    """Settled without a replay: the message is no longer needed."""
    ROUTED_AGAIN = "journal replay"
    """Written to the journal a second time: no dead letter, but a journal record."""
    SENT = "sent"
    """Written to the journal by a user of the status page: no dead letter, but a journal record."""


_SEAL, _POSITION, _PURPOSE = "seal", "position", "audit"
_ACTIONS = frozenset(map(str, Action))


@dataclass(frozen=True, slots=True)
class Actor:
    """The user, host and command that settle dead letters."""

    user: str = ""
    host: str = ""
    command: str = ""
    """Command line that was called, so that others can follow it; without secrets."""

    @staticmethod
    def here(command: str = "") -> Actor:
        """Returns the user and host of this process."""
        try:
            user = getpass.getuser()
        except (KeyError, OSError):  # a container's user may have no name
            user = f"uid {os.getuid()}"
        return Actor(user, socket.gethostname(), command)


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """An entry of the audit: the action taken on one dead letter."""

    position: Position
    """Position of the dead letter, or of the journal record."""
    action: Action
    time: str = ""
    """ISO 8601 in UTC."""
    copy: str = ""
    """Position of the copy, `topic:partition:offset` in the journal or the quarantine; empty if the letter was
    discarded."""
    reason: str = ""
    route: str = ""
    journal: str = ""
    """Journal position of the message when it failed."""
    replays: int = 0
    """Number of replays of the message, this one included."""
    actor: Actor = field(default_factory=Actor)
    origin: str = ""
    """`DeadLetter.origin` of the letter; empty in entries of older versions."""
    topic_id: str = ""
    """Kafka's id of the topic of the dead letter: a topic that is created anew has other letters at the same
    positions."""
    is_doubtful: bool = field(default=False, compare=False)
    """True if the bridge would have sealed the entry, had it written it, and it has not."""

    @property
    def state(self) -> LetterState:
        """State of a dead letter that the entry settles."""
        # Only an entry that the bridge has not written says of a letter that it is a journal record.
        of_journal = self.action in (Action.ROUTED_AGAIN, Action.SENT)
        return LetterState.REPLAYED if of_journal else LetterState(self.action)

    def settles(self, *, has_seal: bool) -> bool:
        """Returns True if the entry settles its letter; `has_seal` is `DeadLetter.has_seal`.

        Letters of older versions, without a seal, have entries of older versions.
        """
        return not (self.is_doubtful and has_seal)

    def to_json(self, keys: SealKeys | None = None) -> str:
        """Returns the value of the audit record, with a seal if there are keys."""
        members = self._members()
        if keys is not None:
            members[_SEAL] = keys.seal(_PURPOSE, {**members, _POSITION: str(self.position)})
        return json.dumps(members, ensure_ascii=False)

    def _members(self) -> dict[str, Any]:
        return {
            "action": self.action,
            "time": self.time,
            "user": self.actor.user,
            "host": self.actor.host,
            "command": self.actor.command,
            "reason": self.reason,
            "route": self.route,
            "journal": self.journal,
            "replays": self.replays,
            "copy": self.copy,
            "origin": self.origin,
            "topic_id": self.topic_id,
        }


def parse(located: LocatedRecord, keys: Sequence[SealKeys] = ()) -> AuditEntry | None:
    """Returns the entry in a record of the audit topic; None if the record is not an entry.

    With keys its seal is checked.

    Version 0.1 wrote the position of the copy and the time as text. A value that cannot be read means replayed: a
    message is rather not replayed than replayed twice.
    """
    record = located.record
    if record.key is None or record.value is None:
        return None
    try:
        position = Position.parse(record.key.decode(), "")
        value = record.value.decode("utf-8", "replace")
    except (UsageError, UnicodeDecodeError):
        return None
    members = _members(value)
    if members is None:
        copy, _, time = value.partition(" ")
        return AuditEntry(position, Action.REPLAYED, time, copy, is_doubtful=bool(keys))
    replays = members.get("replays")

    def text(name: str) -> str:
        member = members.get(name)
        return member if isinstance(member, str) else ""

    action = text("action")
    return AuditEntry(
        position,
        Action(action) if action in _ACTIONS else Action.REPLAYED,
        text("time"),
        text("copy"),
        text("reason"),
        text("route"),
        text("journal"),
        replays if isinstance(replays, int) else 0,
        Actor(text("user"), text("host"), text("command")),
        text("origin"),
        text("topic_id"),
        bool(keys) and not _is_sealed(position, members, keys),
    )


def _is_sealed(position: Position, members: Mapping[str, Any], keys: Sequence[SealKeys]) -> bool:
    sealed = {**members, _POSITION: str(position)}
    seal = sealed.pop(_SEAL, None)
    return any(each.holds(seal, _PURPOSE, sealed) for each in keys)


def settled(
    store: DeadLetterStore,
    topic: str,
    topic_id: str,
    bounds: Mapping[int, tuple[int, int]],
    wanted: Collection[Position] | None = None,
    origins: Collection[str] = (),
) -> dict[Position, AuditEntry]:
    """Returns the entries of the dead letters in `topic`, or of those `wanted` among them.

    Args:
        store: names the audit topic.
        topic: topic of the dead letters, or the quarantine.
        topic_id: Kafka's id of that topic; entries of an earlier topic of that name do not count.
        bounds: first offset and end of each partition; entries of letters that retention has removed do not count.
        wanted: positions; None for all.
        origins: origins of further wanted letters (`DeadLetter.origin`).
    """
    settled_entries: dict[Position, AuditEntry] = {}
    for entry in entries(store, store.keys()):
        position = entry.position
        low, high = bounds.get(position.partition, (0, 0))
        is_there = position.topic == topic and entry.topic_id in ("", topic_id) and low <= position.offset < high
        is_wanted = wanted is None or position in wanted or entry.origin in origins
        if (
            is_there
            and is_wanted
            and not (entry.is_doubtful and position in settled_entries and not settled_entries[position].is_doubtful)
        ):
            settled_entries[position] = entry
    return settled_entries


class AuditTail:
    """Reader of the entries of the letters of one topic, a piece at a time."""

    def __init__(self, store: DeadLetterStore, topic: str, topic_id: str) -> None:
        """Begins at the first entry; `topic` and `topic_id` are as for `settled`."""
        self._store = store
        self._topic = topic
        self._topic_id = topic_id
        self._next: dict[int, int] = {}

    def read(self) -> list[AuditEntry]:
        """Returns the entries that have come since the last call, oldest first."""
        if not exists(self._store.kafka, self._store.audit):
            return []
        keys, entries = self._store.keys(), []
        with KafkaTopicReader(self._store.kafka, self._store.audit) as reader:
            bounds = reader.bounds()
            starts = {each: max(low, self._next.get(each, low)) for each, (low, _) in bounds.items()}
            for located in reader.read(starts, {each: high for each, (_, high) in bounds.items()}):
                self._next[located.position.partition] = located.position.offset + 1
                entry = parse(located, keys)
                if entry and entry.position.topic == self._topic and entry.topic_id in ("", self._topic_id):
                    entries.append(entry)
        return entries


def last(store: DeadLetterStore, count: int, position: Position | None = None) -> list[AuditEntry]:
    """Returns the newest `count` entries, oldest first, and before them the last one of `position` if it is older."""
    newest: deque[AuditEntry] = deque(maxlen=count)
    own_entry: AuditEntry | None = None
    for entry in entries(store):
        newest.append(entry)
        own_entry = entry if entry.position == position else own_entry
    is_older = own_entry is not None and all(entry is not own_entry for entry in newest)
    return [*([own_entry] if own_entry is not None and is_older else []), *newest]


def now() -> str:
    """Returns the current time as an entry has it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def entries(store: DeadLetterStore, keys: Sequence[SealKeys] = ()) -> Iterator[AuditEntry]:
    """Yields the entries that the audit has now, in the order of each partition; with keys their seals are checked."""
    if not exists(store.kafka, store.audit):
        return
    with KafkaTopicReader(store.kafka, store.audit) as reader:
        yield from filter(None, (parse(each, keys) for each in reader.present()))


def _members(value: str) -> dict[str, Any] | None:
    if not value.startswith("{"):
        return None
    try:
        members = json.loads(value)
    except (ValueError, RecursionError):
        return {}
    return members if isinstance(members, dict) else {}
