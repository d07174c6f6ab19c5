"""What the router made of a message, for tests to look at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.message import Record

__all__ = ["Result", "Router"]


@dataclass(frozen=True)
class Result:
    """What became of one message, or of a copy of it."""

    topic: str | None
    record: Record
    outcome: str
    publication: int | None
    failed_message: str | None
    offset: int
    """Offset of the message in the journal."""

    def header(self, name: str) -> str | None:
        return self.record.header(name)


Router = Callable[..., list[Result]]
