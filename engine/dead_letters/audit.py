"""The audit of dead letters: which of them are settled, by whom, when, and how.

A compacted topic beside the dead letters, `<dead-letter topic>.replayed`; the key of a record is the position of a dead
letter, its value JSON. Of several records for one dead letter the last one counts. What does not belong there is passed
over. `transactions` writes it.
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

from engine.errors import UsageError
from engine.peek import Position, Reader
from engine.topics import exists
from routes.targets import audit_topic

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from engine.peek import Located
    from routes.model import Config

__all__ = ["Action", "Actor", "Entry", "last", "now", "parse", "settled"]


class Action(StrEnum):
    """How a dead letter was settled."""

    REPLAYED = "replayed"
    QUARANTINED = "quarantined"
    """Replayed too often: it stands in the quarantine now, open again."""
    DISCARDED = "discarded"
    """Nobody needs its message any more."""


_ACTIONS = frozenset(map(str, Action))


@dataclass(frozen=True, slots=True)
class Actor:
    """Who settles dead letters."""

    user: str = ""
    host: str = ""
    command: str = ""
    """What was called, so that others can follow it; without secrets."""

    @staticmethod
    def here(command: str = "") -> Actor:
        """Whoever runs this process."""
        try:
            user = getpass.getuser()
        except (KeyError, OSError):  # a container's user may have no name
            user = f"uid {os.getuid()}"
        return Actor(user, socket.gethostname(), command)


@dataclass(frozen=True, slots=True)
class Entry:
    """What was done with one dead letter."""

    position: Position
    """The dead letter's own."""
    action: Action
    time: str = ""
    """ISO 8601 in UTC."""
    copy: str = ""
    """Where the message went, `topic:partition:offset` in the journal or the quarantine; empty if it was discarded."""
    reason: str = ""
    route: str = ""
    journal: str = ""
    """Where the journal had the message when it failed."""
    replays: int = 0
    """How often the message was replayed, this time included."""
    actor: Actor = field(default_factory=Actor)
    origin: str = ""
    """`DeadLetter.origin` of the letter; empty in entries of older versions."""
    topic_id: str = ""
    """Kafka's id of the topic of the dead letter: who creates it anew has other dead letters at the same positions."""

    def to_json(self) -> str:
        """The value of its record."""
        return json.dumps(
            {
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
            },
            ensure_ascii=False,
        )


def parse(located: Located) -> Entry | None:
    """The entry in a record of the audit topic; None if it is none.

    Version 0.1 wrote the position of the copy and the time as text. A value that nobody can read means replayed: rather
    is a message not replayed than replayed twice.
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
        return Entry(position, Action.REPLAYED, time, copy)
    replays = members.get("replays")

    def text(name: str) -> str:
        found = members.get(name)
        return found if isinstance(found, str) else ""

    action = text("action")
    return Entry(
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
    )


def settled(
    config: Config,
    topic: str,
    topic_id: str,
    bounds: Mapping[int, tuple[int, int]],
    wanted: Collection[Position] | None = None,
    origins: Collection[str] = (),
) -> dict[Position, Entry]:
    """The entries of the dead letters in `topic`, or of those `wanted` among them.

    Args:
        config: names the audit topic.
        topic: of the dead letters: their topic or the quarantine.
        topic_id: Kafka's id of it; entries of one that had its name before do not count.
        bounds: by partition the offsets it holds: the entries of what its retention has removed do not count.
        wanted: None for all.
        origins: of letters that are wanted, too (`DeadLetter.origin`).
    """
    found: dict[Position, Entry] = {}
    for entry in _entries(config):
        at = entry.position
        low, high = bounds.get(at.partition, (0, 0))
        is_there = at.topic == topic and entry.topic_id in ("", topic_id) and low <= at.offset < high
        if is_there and (wanted is None or at in wanted or entry.origin in origins):
            found[at] = entry
    return found


def last(config: Config, count: int) -> list[Entry]:
    """The newest `count` entries, oldest first."""
    return list(deque(_entries(config), maxlen=count))


def now() -> str:
    """The time of an entry that is made at this moment."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _entries(config: Config) -> Iterator[Entry]:
    topic = audit_topic(config.letter_topic)
    if not exists(config, topic):
        return
    with Reader(config, topic) as reader:
        yield from filter(None, map(parse, reader.present()))


def _members(value: str) -> dict[str, Any] | None:
    if not value.startswith("{"):
        return None
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
