"""Routes that were in force when a journal record was read, as the router's notes in Kafka keep them.

The notes are those of `engine.router.position_store`: of each generation with other routes than the one before, and of
the present one. A record before all of them was read by routes that are not known any more.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import UsageError
from engine.kafka.reader import KafkaTopicReader
from engine.router.generation import offsets
from engine.router.position_store import KEPT_ROUTES, START, Notes, UnreadableNoteError, kept_name, note_key
from routes.config.reader import read_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engine.kafka.offsets import Offsets
    from engine.router.generation import RouterProgress, Start
    from engine.router.position_store import NotedProgress
    from engine.seals import SealKeys
    from routes.kafka_access import KafkaAccess
    from routes.model import JournalConfig

__all__ = ["KeptRoutes", "RouteHistory", "read_history", "routes_text", "to_keep"]

_ROUTING = re.compile(r"bridge\.id|(?:routing|routes|replies|claim-check)\..*|sink\.[^.]+\.(?:type|topic|reply-to)")
_PART = re.compile(rb" [1-9][0-9]{0,8}\Z")
"""End of the key of a part of a note, other than the first."""


@dataclass(frozen=True, slots=True)
class KeptRoutes:
    """Routes that were in force from some positions of the journal on."""

    sequence: int
    """Number of the generation that had them; a later one has a greater number."""
    positions: Offsets
    """First offset that they routed, by journal partition."""
    text: str
    """The part of the properties file that determines the routing, see `routes_text`."""


class RouteHistory:
    """The routes of a bridge over time."""

    def __init__(self, kept: Iterable[KeptRoutes]) -> None:
        self._newest_first = sorted(kept, key=lambda each: each.sequence, reverse=True)

    @property
    def newest(self) -> KeptRoutes | None:
        """The routes of the router's last run; None if it has never run."""
        return next(iter(self._newest_first), None)

    def at(self, partition: int, offset: int) -> KeptRoutes | None:
        """Returns the routes by which a journal record was read, or would be read next; None if they are not known."""
        # A partition that a generation does not name was added later, and read from its first record on.
        return next((each for each in self._newest_first if each.positions.get(partition, 0) <= offset), None)


def read_history(
    access: KafkaAccess, bridge_id: str, journal: JournalConfig, journal_id: str, keys: Sequence[SealKeys]
) -> RouteHistory:
    """Reads the routes of a bridge from its state topic.

    Notes about another journal than that with Kafka's id `journal_id` are left out and, if there are keys, those
    without a valid seal, and those that cannot be read.

    Raises:
        HardFailureError: Kafka does not let this user read the topic.
        UnreachableError: Kafka does not answer.
    """
    notes = {
        note_key(bridge_id, journal.topic, name): Notes(note_key(bridge_id, journal.topic, name), name, keys)
        for name in (START, *map(kept_name, range(KEPT_ROUTES)))
    }
    try:
        with KafkaTopicReader(access, journal.state_topic) as reader:
            for located in reader.present():
                if found := notes.get(_PART.sub(b"", located.record.key or b"")):
                    found.take(located.record)
    except UsageError:
        return RouteHistory(())  # There is no such topic before the first start.
    return RouteHistory(filter(None, (_kept(each, keys, journal, journal_id) for each in notes.values())))


def to_keep(last: RouterProgress | None, noted: NotedProgress | None, start: Start) -> tuple[Start, ...]:
    """Returns the starts whose routes a new generation notes for good: none if it has those of the one before.

    `last` is the progress of that one, `noted` its notes in Kafka, each None if there is none; `start` is the new one.
    """
    if last is None:
        return (start,)
    before = (last.start, *((noted.progress.start,) if noted else ()))
    is_known = noted is not None and all(each.routes == start.routes for each in before)
    return () if is_known else (last.start, start)


def routes_text(text: str) -> str:
    """The lines of a properties file's text that determine the routing; lines with passwords are not among them."""
    entries = (entry for entry in read_text(text).entries if _ROUTING.fullmatch(entry.key))
    return "".join("\n".join(entry.source).rstrip("\n") + "\n" for entry in entries)


def _kept(notes: Notes, keys: Sequence[SealKeys], journal: JournalConfig, journal_id: str) -> KeptRoutes | None:
    try:
        note = next(notes.sealed(), None) if keys else json.loads(notes.last(journal.state_topic) or b"null")
        if note is None or note["journal_id"] not in ("", journal_id):
            return None
        return KeptRoutes(int(note["sequence"]), offsets(note["positions"]), str(note["routes"]))
    except (UnreadableNoteError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
