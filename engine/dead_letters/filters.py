"""Filters of dead letters: by reason, route, time, headers, and any predicate of the routing language."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from engine.message import Message
from routes.predicate import evaluate
from routes.properties import SEED_NAMES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.dead_letters.letter import DeadLetter
    from routes.predicate import Predicate

__all__ = ["NO_ROUTE", "Filters"]

NO_ROUTE = "-"
"""Stands for no route: for messages that no route wanted, or that failed before routing."""


@dataclass(frozen=True, slots=True)
class Filters:
    """A selection of dead letters: a letter is selected if every filter takes it; an empty filter takes all."""

    reasons: frozenset[str] = frozenset()
    routes: frozenset[str] = frozenset()
    """Names of routes, `NO_ROUTE` among them."""
    since_ms: int | None = None
    """Selects letters that failed then or later, in milliseconds since 1970."""
    until_ms: int | None = None
    """Selects letters that failed before then, in milliseconds since 1970."""
    headers: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The values that the message may have under each name. A name is that of a JMS field (`JMSType` or `Type`), of a
    property, or of a header of the record as it is (`jmsbridge.source`)."""
    where: Predicate | None = None
    """Predicate that the message has to fulfil."""

    def __bool__(self) -> bool:
        """True if any filter is set."""
        return self != Filters()

    def takes(self, letter: DeadLetter) -> bool:
        """Returns True if a dead letter passes all filters. Never fails, whatever the letter holds."""
        return (
            (not self.reasons or letter.reason in self.reasons)
            and (not self.routes or (letter.route or NO_ROUTE) in self.routes)
            and (self.since_ms is None or letter.time_ms >= self.since_ms)
            and (self.until_ms is None or letter.time_ms < self.until_ms)
            and all(_has(letter, name, values) for name, values in self.headers.items())
            and (self.where is None or self._fulfils(letter, self.where))
        )

    def options(self) -> list[str]:
        """Returns the filters as options of the command line, quoted for a shell; times are absolute."""
        given = [("--reason", reason) for reason in sorted(self.reasons)]
        given += [("--route", route) for route in sorted(self.routes)]
        given += [("--since", _iso(self.since_ms))] if self.since_ms is not None else []
        given += [("--until", _iso(self.until_ms))] if self.until_ms is not None else []
        given += [("--header", f"{name}={value}") for name, values in self.headers.items() for value in sorted(values)]
        given += [("--where", self.where.text)] if self.where is not None else []
        return [f"{name} {shlex.quote(value)}" for name, value in given]

    @staticmethod
    def _fulfils(letter: DeadLetter, where: Predicate) -> bool:
        return evaluate(where, Message.from_record(letter.located.record).lookup) is True


def _has(letter: DeadLetter, name: str, values: frozenset[str]) -> bool:
    names = (name, f"jms.{SEED_NAMES.get(name, name)}")
    return any(
        key in names and value is not None and value.decode("utf-8", "replace") in values
        for key, value in letter.located.record.headers
    )


def _iso(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
