"""Millions of numbered messages in bounded memory: what is under way, what was not acknowledged, what is missing."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from tests.chaos.ledger import KAFKA, KEYS, Number

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Arrivals", "RunningLedger", "is_for_topic"]


def is_for_topic(number: Number) -> bool:
    """Whether it goes to the topic of its source, by the routes of `system.MORE`; the others are for sinks."""
    if number.source == "kafka" or number.destination == KAFKA:
        return True
    return number.destination == "dropbox" and number.source != "dropbox"


class RunningLedger:
    """As `tests.chaos.ledger.Ledger`, of messages by the million: it forgets what is acknowledged."""

    def __init__(self) -> None:
        self.next: dict[tuple[str, int], int] = defaultdict(int)
        """By source and key: the sequence number after the last one issued."""
        self.open: dict[str, set[Number]] = defaultdict(set)
        """By source: what was sent and is not acknowledged, or never was."""
        self._turns: dict[str, int] = defaultdict(int)

    def issue(self, source: str, count: int) -> list[Number]:
        """New numbers, the keys in turn."""
        issued = []
        for turn in range(self._turns[source], self._turns[source] + count):
            key = turn % KEYS
            issued.append(Number(source, key, self.next[source, key]))
            self.next[source, key] += 1
        self._turns[source] += count
        self.open[source].update(issued)
        return issued

    def acknowledge(self, number: Number) -> None:
        """The bridge is answerable for it."""
        self.open[number.source].discard(number)

    def issued(self, source: str) -> int:
        """How many so far."""
        return self._turns[source]


class Arrivals:
    """What has arrived in the topic of a source: each number has to come once, those of a key in their order."""

    def __init__(self, is_expected: Callable[[Number], bool] = is_for_topic) -> None:
        self._is_expected = is_expected
        self.count = 0
        self.twice = 0
        self.reordered = 0
        self.unknown = 0
        self.missing: set[Number] = set()
        """Skipped, and not come later."""
        self.last: dict[tuple[str, int], int] = {}
        """By source and key: the highest sequence number so far."""

    def add(self, number: Number | None) -> None:
        """The next record of a topic."""
        self.count += 1
        if number is None or not self._is_expected(number):
            self.unknown += 1
            return
        line, sequence = (number.source, number.key), number.sequence
        last = self.last.get(line, -1)
        if sequence > last:
            skipped = (Number(*line, each) for each in range(last + 1, sequence))
            self.missing.update(each for each in skipped if self._is_expected(each))
            self.last[line] = sequence
        elif number in self.missing:
            self.missing.discard(number)
            self.reordered += 1
        else:
            self.twice += 1

    def lost(self, ledger: RunningLedger, source: str) -> list[Number]:
        """Acknowledged, and neither there nor on its way: to be asked when nothing comes any more."""
        never = [
            Number(source, key, sequence)
            for key in range(KEYS)
            for sequence in range(self.last.get((source, key), -1) + 1, ledger.next[source, key])
        ]
        found = [*(each for each in self.missing if each.source == source), *filter(self._is_expected, never)]
        return [each for each in found if each not in ledger.open[source]]
