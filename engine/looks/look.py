"""Entry of the audit of looks, and its JSON."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from engine.errors import UsageError
from engine.kafka.reader import Position
from engine.looks.entry import UserEntry, members_of

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Look", "LookWay"]


class LookWay(StrEnum):
    """Ways to see the body of a message."""

    RECORD = "record page"
    FILE = "download"
    LETTER = "dead letter page"
    LIST = "list of records"
    """The beginning of each body."""
    SEARCH = "search page"
    """The beginning of each body."""
    TRIAL = "try page"
    FORM = "form"
    """A form with the message, to be corrected or copied."""
    API = "API"
    STATE = "state page"
    """Rows of the state of a topology."""


@dataclass(frozen=True, slots=True)
class Look(UserEntry):
    """Look of a user at the bodies of some messages."""

    way: str
    """A `LookWay`, or that of a later version."""
    masked: bool
    """True if a mask was applied to the bodies."""
    records: tuple[Position, ...]
    state: str = ""
    """Topology and node whose rows the user saw, `totals/by-day`; empty for records."""

    def members(self) -> dict[str, Any]:
        """Returns the members of the entry as JSON; `state` only if it is set."""
        members = {**UserEntry.members(self), "records": list(map(str, self.records))}
        return members if self.state else {name: members[name] for name in members if name != "state"}

    @staticmethod
    def parse(value: bytes | None) -> Look | None:
        """Reads the value of an audit record; None if it is not an entry."""
        members = members_of(value)
        time, user, role, host, way = (_text(members, name) for name in ("time", "user", "role", "host", "way"))
        positions = members.get("records")
        try:
            records = tuple(Position.parse(str(each), "") for each in positions) if isinstance(positions, list) else ()
        except UsageError:
            return None
        masked, state = members.get("masked") is True, _text(members, "state")
        return Look(time, user, role, host, way, masked, records, state) if time and way else None


def _text(members: Mapping[str, Any], name: str) -> str:
    found = members.get(name)
    return found if isinstance(found, str) else ""
