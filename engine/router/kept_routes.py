"""Routes that were in force when a journal record was read, as the router's notes in Kafka keep them.

The notes are those of `engine.router.position_store`: of routes that others have replaced, and of the present ones.
Each says for which stretch of the journal they were in force. So a lost note makes routes unknown, and never wrong.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from engine.errors import UsageError
from engine.kafka.reader import KafkaTopicReader
from engine.router.generation import KeptRoutes, Start, offsets
from engine.router.position_store import KEPT_ROUTES, START, Notes, UnreadableNoteError, kept_name, note_key
from routes.config.reader import read_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engine.kafka.offsets import Offsets
    from engine.router.generation import RouterProgress
    from engine.router.position_store import NotedProgress
    from engine.seals import SealKeys
    from routes.kafka_access import KafkaAccess
    from routes.model import JournalConfig

__all__ = ["RouteHistory", "read_history", "routes_text", "since_of", "to_keep"]

_ROUTING = re.compile(r"bridge\.id|(?:routing|routes|replies|claim-check)\..*|sink\.[^.]+\.(?:type|topic|reply-to)")
_PART = re.compile(rb" [1-9][0-9]{0,8}\Z")
"""End of the key of a part of a note, other than the first."""


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
        # A partition that is not among the positions was added later, and read from its first record on.
        return next(
            (
                each
                for each in self._newest_first
                if each.positions.get(partition, 0) <= offset
                and (each.ends is None or offset < each.ends.get(partition, 0))
            ),
            None,
        )


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


def since_of(last: RouterProgress | None, routes: str) -> Offsets:
    """Returns `Start.routes_since` for a generation with these routes behind that of `last`, if there is one."""
    return dict(last.start.in_force_since) if last is not None and last.start.routes == routes else {}


def to_keep(last: RouterProgress | None, noted: NotedProgress | None, start: Start) -> KeptRoutes | None:
    """Returns the routes to keep for good when a generation begins; None if it has those of the one before.

    `last` is the progress of that one, `noted` its notes in Kafka, each None if there is none; `start` is the new one.
    """
    # A generation that was never noted has routed nothing.
    progress = noted.progress if noted is not None and noted.is_sealed else last
    if progress is None or progress.start.routes == start.routes:
        return None
    before = progress.start
    return KeptRoutes(
        before.sequence, before.journal_id, before.in_force_since, dict(start.in_force_since), before.routes
    )


def routes_text(text: str) -> str:
    """The lines of a properties file's text that determine the routing; lines with passwords are not among them."""
    entries = (entry for entry in read_text(text).entries if _ROUTING.fullmatch(entry.key))
    return "".join("\n".join(entry.source).rstrip("\n") + "\n" for entry in entries)


def _kept(notes: Notes, keys: Sequence[SealKeys], journal: JournalConfig, journal_id: str) -> KeptRoutes | None:
    try:
        note = next(notes.sealed(), None) if keys else json.loads(notes.last(journal.state_topic) or b"null")
        if note is None or note["journal_id"] not in ("", journal_id):
            return None
        sequence, of_journal, routes = int(note["sequence"]), str(note["journal_id"]), str(note["routes"])
        if "ends" not in note:
            return KeptRoutes(sequence, of_journal, Start.of(note).in_force_since, None, routes)
        return KeptRoutes(sequence, of_journal, offsets(note["positions"]), offsets(note["ends"]), routes)
    except (UnreadableNoteError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
