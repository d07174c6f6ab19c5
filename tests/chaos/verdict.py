"""Compares what was sent with what arrived: the counts that a run stands or falls with. Knows no broker."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, NamedTuple

from tests.chaos.ledger import DESTINATIONS, SOURCES, Number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.chaos.ledger import Sent

__all__ = ["Arrival", "Counts", "Position", "Verdict", "judge"]


class Position(NamedTuple):
    """A place in the journal."""

    partition: int
    offset: int


class Arrival(NamedTuple):
    """A message at its destination, or a record of the journal."""

    number: Number | None
    """None: no sender has made its body."""
    position: Position | None
    """The journal record it was made from; None: it does not say."""


@dataclass(slots=True)
class Counts:
    """Of the messages of one source for one destination."""

    sent: int = 0
    acknowledged: int = 0
    delivered: int = 0
    """At least once, at their destination."""
    lost: int = 0
    """Acknowledged and not delivered."""
    not_journaled: int = 0
    """Of the lost: those that are not in the journal either."""
    journaled_twice: int = 0
    """Records of the journal beyond the first of a message: a broker has delivered it again."""
    published_twice: int = 0
    """Arrivals beyond the first that were made from one record of the journal: the fault of the bridge alone."""
    reordered_before: int = 0
    """In the journal behind a later one of the same key."""
    reordered_after: int = 0
    """At the destination behind a later record of the same key in the journal."""
    misrouted: int = 0
    """Arrivals elsewhere."""

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))


@dataclass(slots=True)
class Verdict:
    """What became of all messages."""

    cells: dict[tuple[str, str], Counts] = field(
        default_factory=lambda: {(source, to): Counts() for source in SOURCES for to in DESTINATIONS}
    )
    """By source and destination."""
    unknown: int = 0
    """Arrivals that nobody has sent, or that do not name their journal record."""
    examples: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """A few of each kind of fault, to look for in logs."""

    @property
    def total(self) -> Counts:
        """Of everything."""
        return sum(self.cells.values(), Counts())

    def faults(self) -> dict[str, int]:
        """What must not be and is."""
        total = self.total
        # JetStream sends again what a dead source left open when its ack_wait is over, behind newer messages.
        ordered = sum(counts.reordered_before for (source, _), counts in self.cells.items() if source != "nats")
        found = {
            "lost": total.lost,
            "journaled twice": total.journaled_twice,
            "published twice": total.published_twice,
            "reordered before the journal": ordered,
            "reordered after the journal": total.reordered_after,
            "misrouted": total.misrouted,
            "unknown": self.unknown,
        }
        return {kind: count for kind, count in found.items() if count}


_EXAMPLES = 5


def judge(sent: Mapping[Number, Sent], journal: Sequence[Arrival], arrived: Mapping[str, Sequence[Arrival]]) -> Verdict:
    """`journal` and each destination in their order, as far as messages of one key are concerned."""
    verdict = Verdict()
    journaled = Counter(each.number for each in journal)
    delivered = {destination: {each.number for each in found} for destination, found in arrived.items()}
    for number, entry in sent.items():
        counts = verdict.cells[number.source, number.destination]
        is_delivered = number in delivered[number.destination]
        counts.sent += 1
        counts.acknowledged += entry.acknowledged
        counts.delivered += is_delivered
        counts.journaled_twice += max(journaled[number] - 1, 0)
        if journaled[number] > 1:
            _example(verdict, "journaled twice", number)
        if entry.acknowledged and not is_delivered:
            counts.lost += 1
            counts.not_journaled += number not in journaled
            _example(verdict, "lost", number)
    _order_of_journal(verdict, sent, journal)
    for destination, found in arrived.items():
        _destination(verdict, sent, destination, found)
    return verdict


def _order_of_journal(verdict: Verdict, sent: Mapping[Number, Sent], journal: Sequence[Arrival]) -> None:
    """Only of acknowledged messages: of the others it is not known when the broker has had them."""
    highest: dict[tuple[str, int], int] = {}
    seen: set[Number] = set()
    for number, _ in journal:
        if number is None or number in seen or number not in sent or not sent[number].acknowledged:
            continue
        seen.add(number)
        if number.sequence < highest.get(number[:2], -1):
            verdict.cells[number.source, number.destination].reordered_before += 1
            _example(verdict, "reordered before the journal", number)
        highest[number[:2]] = max(number.sequence, highest.get(number[:2], -1))


def _destination(verdict: Verdict, sent: Mapping[Number, Sent], name: str, found: Sequence[Arrival]) -> None:
    highest: dict[tuple[str, int], Position] = {}
    seen: set[Position] = set()
    for number, position in found:
        if number is None or number not in sent or position is None:
            verdict.unknown += 1
            _example(verdict, "unknown", (name, number, position))
            continue
        counts = verdict.cells[number.source, number.destination]
        if number.destination != name:
            counts.misrouted += 1
            _example(verdict, "misrouted", (name, number))
        elif position in seen:
            counts.published_twice += 1
            _example(verdict, "published twice", (number, position))
        elif position < highest.get(number[:2], position):
            counts.reordered_after += 1
            _example(verdict, "reordered after the journal", (number, position))
        seen.add(position)
        highest[number[:2]] = max(position, highest.get(number[:2], position))


def _example(verdict: Verdict, kind: str, what: object) -> None:
    if len(verdict.examples[kind]) < _EXAMPLES:
        verdict.examples[kind].append(str(what))
