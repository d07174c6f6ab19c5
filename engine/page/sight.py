"""Records as the user of a request may see them: without values that are masked for viewers, each look noted before.

Everything that shows a body, or a part of one, gets it from here. If the look cannot be noted, the body is not shown.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.looks.log import LookTopic
from engine.looks.look import Look, LookWay
from engine.page.viewer_mask import MaskedError, ViewerMask
from engine.schemas.documents import documents_of
from engine.telemetry.http_login import LOGIN
from engine.telemetry.http_section import HttpConfig
from engine.telemetry.roles import UserRole, role_of
from engine.times import iso
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.requests import Request

    from engine.find.question import FindQuestion
    from engine.find.timeline import Timeline, TimelineEvent
    from engine.kafka.reader import LocatedRecord
    from engine.page.view import View
    from routes.predicate import Predicate

__all__ = ["SeenRecord", "Sight"]

_REGISTRY_SECONDS = 1.0
_ONCE_SECONDS = 600.0
"""Time in which a list that is loaded again, as a live one is, is not noted again."""


@dataclass(frozen=True, slots=True)
class SeenRecord:
    """Record as a user sees it."""

    located: LocatedRecord
    size: int
    """Bytes of the whole body, shown or not."""
    hidden: str = ""
    """Reason why the body is not shown; empty if it is, or if there is none."""


class Sight:
    """Sight of the user of one request. Its methods may ask Kafka, so they run in a thread."""

    def __init__(self, request: Request, view: View) -> None:
        self._config = view.config()
        self._log = view.looks
        self._role = role_of(request)
        self._user = str(request.scope.get(LOGIN, ""))
        self._host = request.client.host if request.client else ""
        masked = self._role is UserRole.VIEWER and bool(self._config.section(HttpConfig).viewer.masked)
        documents = documents_of(self._config, _REGISTRY_SECONDS) if masked else None
        self._mask = ViewerMask(self._config, documents) if masked else None

    @property
    def is_masked(self) -> bool:
        """True if the user does not see everything."""
        return self._mask is not None

    def records(self, way: LookWay, found: Iterable[LocatedRecord]) -> list[SeenRecord]:
        """Returns records as the user sees them, after the look is noted; without bodies if that fails."""
        return self.cut_records(way, ((each, len(each.record.value or b"")) for each in found))

    def cut_records(self, way: LookWay, found: Iterable[tuple[LocatedRecord, int]]) -> list[SeenRecord]:
        """Returns what `records` does, for records whose bodies may be cut, each with the size of its body."""
        seen = [self.masked(located, size) for located, size in found]
        try:
            self.note(way, seen)
        except BridgeError as error:
            why = f"a look at a body has to be noted, and {error}"
            return [_without_body(each, why) if each.located.record.value else each for each in seen]
        return seen

    def only(self, way: LookWay, located: LocatedRecord) -> LocatedRecord:
        """Returns the record as the user sees it, for an answer that has nothing but its body; raises as `note`.

        Raises:
            MaskedError: the user does not see the body.
        """
        seen = self.masked(located)
        if seen.hidden:
            msg = f"{located.position}: the body is not shown to viewers: {seen.hidden}"
            raise MaskedError(msg)
        self.note(way, [seen])
        return seen.located

    def masked(self, located: LocatedRecord, size: int | None = None) -> SeenRecord:
        """Returns a record as the user may see it, once the look is noted; `size` is that of a body that may be cut."""
        length = len(located.record.value or b"")
        size = length if size is None else size
        if self._mask is None:
            return SeenRecord(located, size)
        found = self._mask.record(located, is_cut=size > length)
        return SeenRecord(found.located, size, found.hidden)

    def note(self, way: LookWay, seen: Iterable[SeenRecord]) -> None:
        """Notes the look at the bodies of records, if they have any.

        Raises:
            HardFailureError: Kafka refuses the entry.
            UnreachableError: Kafka does not take it in time.
        """
        positions = tuple(each.located.position for each in seen if each.located.record.value)
        has_masks = self._mask is not None and self._mask.has_bodies
        now = iso(round(time.time() * 1000))
        look = Look(now, self._user, str(self._role), self._host, way, has_masks, positions)
        once = _ONCE_SECONDS if way is LookWay.LIST else 0.0
        self._log.write(LookTopic.of(self._config), look, once_seconds=once)

    def note_state(self, way: LookWay, state: str) -> None:
        """Notes the look at rows of the state of a topology, as `Look.state` names it; raises as `note`."""
        now = iso(round(time.time() * 1000))
        look = Look(now, self._user, str(self._role), self._host, way, masked=False, records=(), state=state)
        self._log.write(LookTopic.of(self._config), look)

    def document(self, content: bytes) -> bytes | None:
        """Returns the content of a body with a schema as the user may see it; None if nothing of it is shown."""
        return content if self._mask is None else self._mask.document(content)

    def events(self, told: Timeline) -> tuple[TimelineEvent, ...]:
        """Returns the events of a timeline as the user may see them."""
        return told.events if self._mask is None else self._mask.events(told)

    def check(self, predicate: Predicate | None) -> None:
        """Raises MaskedError if a predicate would tell a masked value."""
        if self._mask is not None:
            self._mask.check(predicate)

    def check_question(self, question: FindQuestion) -> None:
        """Raises MaskedError if a search would tell a masked value."""
        if self._mask is not None:
            self._mask.check_question(question)

    def check_whole(self, what: str) -> None:
        """Raises MaskedError for a user who does not see everything; `what` shows values that no mask covers."""
        if self._mask is not None:
            msg = f"{what} may show values that http.viewer.mask hides from viewers; ask an operator"
            raise MaskedError(msg)


def _without_body(seen: SeenRecord, why: str) -> SeenRecord:
    located = seen.located
    bare = replace(located, record=type(located.record)(located.record.key, None, located.record.headers))
    return SeenRecord(bare, seen.size, why)
