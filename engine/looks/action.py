"""Entries of the audit of actions: one before an action is done, and one with its result."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from engine.looks.entry import UserEntry, members_of

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["ActionQuestion", "AuditedAction", "merged"]

_NEEDED = ("id", "time", "action")


@dataclass(frozen=True, slots=True)
class AuditedAction(UserEntry):
    """Action of a user that changes something; the entry with the result has the time of the result."""

    id: str
    """Text that both entries of an action have."""
    action: str
    """Action as the page or the API names it: `pause`, `replay`."""
    target: str
    """Part, route, positions of messages, or destination; empty for the whole bridge."""
    result: str = ""
    """Result in words; empty in the entry before the action."""

    @staticmethod
    def parse(value: bytes | None) -> AuditedAction | None:
        """Reads the value of an audit record; None if it is not an entry."""
        members = members_of(value)
        texts = {each.name: members.get(each.name) for each in fields(AuditedAction)}
        known = {name: text if isinstance(text, str) else "" for name, text in texts.items()}
        return AuditedAction(**known) if all(known[name] for name in _NEEDED) else None


@dataclass(frozen=True, slots=True)
class ActionQuestion:
    """Question for some actions; empty texts ask for all."""

    user: str = ""
    """Part of the user name, in any case."""
    action: str = ""
    target: str = ""
    """Part of the target."""

    def takes(self, entry: AuditedAction) -> bool:
        """Returns True if an action is asked for."""
        is_user = self.user.casefold() in entry.user.casefold()
        return is_user and self.action in ("", entry.action) and self.target in entry.target


def merged(entries: Iterable[AuditedAction]) -> list[AuditedAction]:
    """Returns one entry for each action, in the order and with the time of the first, and with the last result."""
    found: dict[str, AuditedAction] = {}
    for each in entries:
        first = found.get(each.id)
        # The entry with the result has all that the one before has, which may be too old to be read.
        found[each.id] = each if first is None else AuditedAction(**{**first.members(), "result": each.result})
    return list(found.values())
