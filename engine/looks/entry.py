"""Entries of both audits, and their JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any

__all__ = ["UserEntry", "members_of"]


@dataclass(frozen=True, slots=True)
class UserEntry:
    """Entry of an audit: which user did something, and when."""

    time: str
    """ISO 8601 in UTC."""
    user: str
    """User name of the login; empty if none is needed."""
    role: str
    host: str
    """Address of the client's connection."""

    def members(self) -> dict[str, Any]:
        """Returns the members of the entry as JSON."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def to_json(self) -> str:
        """Returns the value of the audit record."""
        return json.dumps(self.members(), ensure_ascii=False)


def members_of(value: bytes | None) -> dict[str, Any]:
    """Reads the members of an entry from the value of an audit record; empty if it has none."""
    try:
        members = json.loads(value or b"")
    except (ValueError, RecursionError):
        return {}
    return members if isinstance(members, dict) else {}
