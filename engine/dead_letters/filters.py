"""Which dead letters are meant: by reason, route, time, headers, and any predicate of the routing language."""

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
"""Stands for no route: what nothing wanted, or never came so far."""


@dataclass(frozen=True, slots=True)
class Filters:
    """A dead letter is meant if every filter takes it; one without values takes all."""

    reasons: frozenset[str] = frozenset()
    routes: frozenset[str] = frozenset()
    """Names of routes, `NO_ROUTE` among them."""
    since_ms: int | None = None
    """Failed then or later, in milliseconds since 1970."""
    until_ms: int | None = None
    """Failed before then."""
    headers: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By name the values that the message may have there. A name is that of a JMS field (`JMSType` or `Type`), of a
    property, or of a header of the record as it is (`jmsbridge.source`)."""
    where: Predicate | None = None
    """What the message has to fulfil."""

    def __bool__(self) -> bool:
        """Whether there is any."""
        return self != Filters()

    def takes(self, letter: DeadLetter) -> bool:
        """Whether a dead letter passes all of them. Never fails, whatever it holds."""
        return (
            (not self.reasons or letter.reason in self.reasons)
            and (not self.routes or (letter.route or NO_ROUTE) in self.routes)
            and (self.since_ms is None or letter.time_ms >= self.since_ms)
            and (self.until_ms is None or letter.time_ms < self.until_ms)
            and all(_has(letter, name, values) for name, values in self.headers.items())
            and (self.where is None or self._fulfils(letter, self.where))
        )

    def options(self) -> list[str]:
        """The same as options of the command line, in the spelling of a shell; times are absolute."""
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
