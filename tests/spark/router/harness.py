"""What the router made of a message, for tests to look at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.message import Record

__all__ = ["Result", "Router"]


@dataclass(frozen=True)
class Result:
    """What became of one message."""

    topic: str | None
    record: Record
    outcome: str
    route: int | None
    failed_message: str | None

    def header(self, name: str) -> str | None:
        return self.record.header(name)


Router = Callable[..., list[Result]]
