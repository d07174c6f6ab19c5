"""Dead letters: reading the record of a message that could not be routed, restoring the original, and filtering.

A dead letter is the journal record that it was made from (key, value, headers) plus headers that describe the failure.
The router writes dead letters (`router.failures`); `replay` sends originals back through the journal.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import chain
from typing import TYPE_CHECKING

from engine.message import ONLY, ORIGIN, POSITION, REPLAYS, TARGET, Message, Record
from engine.printable import LONGEST_REASON, shortened
from engine.record import SEAL
from engine.telemetry.metrics import NO_ROUTE
from engine.times import iso, milliseconds
from routes.predicate.bodies import BOUNDS, Bounds
from routes.properties import SEED_NAMES
from routes.sections import HELD

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from engine.kafka.reader import LocatedRecord, Position
    from routes.model import Publication
    from routes.predicate import Predicate
    from routes.predicate.bodies import DocumentReader

__all__ = ["DETAIL", "REASON", "TIME", "DeadLetter", "Filters", "original"]

REASON = "jmsbridge.reason"
"""Header: why a message is a dead letter."""
TIME = "jmsbridge.time"
"""Header: when it became one, ISO 8601."""

_CONNECT = "__connect.errors."
DETAIL = f"{_CONNECT}exception.message"
"""Header: the reason in a sentence."""
_ROUTE = "jmsbridge.route"
_TRUNCATED = "jmsbridge.truncated"
_OWN = frozenset({REASON, _ROUTE, TARGET, TIME, POSITION, SEAL, REPLAYS, _TRUNCATED})
_DIGEST_BYTES = 12
_COUNT = re.compile("[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record of the dead-letter topic, with its headers read.

    Whoever may write to the topic chooses the texts, so each is `shortened` to LONGEST_REASON.
    """

    located: LocatedRecord

    @property
    def position(self) -> Position:
        """Position of the letter in the dead-letter topic, which identifies it."""
        return self.located.position

    @property
    def reason(self) -> str:
        """Reason of the failure, one of `engine.telemetry.metrics.DEAD_LETTER_REASONS`."""
        return self._header(REASON)

    @property
    def detail(self) -> str:
        """The reason in a sentence."""
        return self._header(DETAIL)

    @property
    def sink(self) -> str:
        """Name of the sink that could not deliver the message; empty if it failed elsewhere."""
        return self._header(_CONNECT + "stage").partition("sink ")[2]

    @property
    def route(self) -> str:
        """Name of the route in which the message failed; empty if the message was unmatched."""
        return self._header(_ROUTE)

    @property
    def publication(self) -> str:
        """Number and template of the destination that failed; empty if the message had one publication alone."""
        return self._header(TARGET)

    @property
    def target(self) -> str:
        """Destination that failed, as its route has it; empty if the message had one publication alone."""
        return self.publication.partition(" ")[2]

    @property
    def time(self) -> str:
        """Time of the failure, ISO 8601 in UTC."""
        return self._header(TIME)

    @property
    def time_ms(self) -> int:
        """Time of the failure in milliseconds since 1970; Kafka's time of the record if the header has none."""
        found = milliseconds(self.time)
        return self.located.time_ms if found is None else found

    @property
    def journal_position(self) -> str:
        """`topic:partition:offset` of the journal record that the letter was made from."""
        return self._header(POSITION)

    @property
    def truncated(self) -> str:
        """Size of the original in bytes if its body had to be cut, else empty."""
        return self._header(_TRUNCATED)

    @property
    def replays(self) -> int:
        """Number of replays of the message before this failure."""
        text = self._header(REPLAYS)
        return int(text) if _COUNT.fullmatch(text) else 0

    @property
    def is_held(self) -> bool:
        """True if the message did not fail, but is held while its route is paused."""
        return self.reason == HELD

    @property
    def replays_with_next(self) -> int:
        """Number of replays of the message after the next one; that of a held message is not one of a failure."""
        return self.replays + (not self.is_held)

    @property
    def has_seal(self) -> bool:
        """True if the letter says that this version of the bridge has written it, whose audit entries have seals."""
        return bool(self._header(SEAL))

    @property
    def origin(self) -> str:
        """Journal position, route and a digest of the message; empty for a letter that was never in the journal.

        Letters of one failed message have the same origin, if a part of the bridge that was killed has written it
        twice. The digest tells a journal that was made anew from the one before, which had the same positions.
        """
        if not self.journal_position:
            return ""
        record, own = self.located.record, _OWN - {REPLAYS}
        digest = blake2b(digest_size=_DIGEST_BYTES)
        of_message = ((name, value) for name, value in record.headers if not _is_added(name, own))
        for part in chain((record.key, record.value), *((name.encode(), value) for name, value in of_message)):
            digest.update(b"-" if part is None else b"%d:%b" % (len(part), part))
        return f"{self.journal_position} {digest.hexdigest()} {self.route}"

    def message(self, bounds: Bounds, documents: DocumentReader | None) -> Message:
        """Returns the message, whose body predicates read within bounds, and by `documents` if it has a schema."""
        return Message.from_record(self.located.record, documents, bounds)

    def _header(self, name: str) -> str:
        # The bridge's own headers were appended after those of the message, which may carry the same names.
        for key, value in reversed(self.located.record.headers):
            if key == name and value is not None:
                return shortened(value.decode("utf-8", "replace"), LONGEST_REASON)
        return ""


def original(letter: DeadLetter, bridge_id: str, publication: Publication | None = None) -> Record:
    """Returns the journal record that the dead letter was made from, with the number of its replays, this one included.

    The record lacks the headers that the dead letter added, and this bridge as origin, or the bridge would take the
    message for its own. With a publication, it is for that one alone.
    """
    record = letter.located.record
    bridge = bridge_id.encode()
    headers = tuple(
        (name, value)
        for name, value in record.headers
        if not (_is_added(name, _OWN) or name == ONLY or (name == ORIGIN and value == bridge))
    )
    only = () if publication is None else ((ONLY, publication.label.encode()),)
    return replace(record, headers=(*headers, *only, (REPLAYS, str(letter.replays_with_next).encode())))


def _is_added(name: str, own: Collection[str]) -> bool:
    """True if a header is one that the dead letter added to those of the message."""
    return name in own or name.startswith(_CONNECT)


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
    bounds: Bounds = field(default=BOUNDS, compare=False)
    """Sizes beyond which the predicate does not see the message's body."""
    documents: DocumentReader | None = field(default=None, compare=False, repr=False)
    """Reader of bodies with a schema for `where`; None if there is no registry."""

    def __bool__(self) -> bool:
        """True if any filter is set."""
        return self != Filters()

    def takes(self, letter: DeadLetter) -> bool:
        """Returns True if a dead letter passes all filters, whatever the letter holds; raises what `documents` does."""
        return (
            (not self.reasons or letter.reason in self.reasons)
            and (not self.routes or (letter.route or NO_ROUTE) in self.routes)
            and (self.since_ms is None or letter.time_ms >= self.since_ms)
            and (self.until_ms is None or letter.time_ms < self.until_ms)
            and all(_has(letter, name, values) for name, values in self.headers.items())
            and (self.where is None or letter.message(self.bounds, self.documents).fulfils(self.where))
        )

    def options(self) -> list[str]:
        """Returns the filters as options of the command line, quoted for a shell; times are absolute."""
        given = [("--reason", reason) for reason in sorted(self.reasons)]
        given += [("--route", route) for route in sorted(self.routes)]
        given += [("--since", iso(self.since_ms))] if self.since_ms is not None else []
        given += [("--until", iso(self.until_ms))] if self.until_ms is not None else []
        given += [("--header", f"{name}={value}") for name, values in self.headers.items() for value in sorted(values)]
        given += [("--where", self.where.text)] if self.where is not None else []
        return [f"{name} {shlex.quote(value)}" for name, value in given]


def _has(letter: DeadLetter, name: str, values: frozenset[str]) -> bool:
    names = (name, f"jms.{SEED_NAMES.get(name, name)}")
    return any(
        key in names and value is not None and value.decode("utf-8", "replace") in values
        for key, value in letter.located.record.headers
    )
