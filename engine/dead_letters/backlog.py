"""Counts of the open dead letters, those neither replayed nor put into quarantine nor discarded: five bytes for each.

Knows no Kafka: `watch` reads the topics and reports each record here.
"""

from __future__ import annotations

from array import array
from collections import Counter

from engine.dead_letters.state import LetterState

__all__ = ["MOST", "OTHER", "Backlog"]

OTHER = "other"
"""Stands for a reason that the bridge does not know."""
MOST = 10_000_000
"""Greatest number of dead letters counted in a topic, the newest ones: 50 MB."""

_STATES = tuple(LetterState)
_FIRST_REASON = len(_STATES)
"""Marks of offsets: 0 for no letter, the number of its state in `_STATES` for a settled letter, and the number of its
reason, from here, for an open one."""
_SEALED = 0x80
"""Added to the reason of a letter with a seal, and to a state of which the audit is sure: only a sure entry of the
audit changes either."""
_LATEST_SECONDS = 2**32 - 1


class _Partition:
    """The dead letters of one partition, by offset from `base` on."""

    def __init__(self, base: int, most: int) -> None:
        self._base = base
        self._most = most
        self._marks = bytearray()
        self._times = array("I")
        self._early: dict[int, int] = {}
        """Marks of letters that were settled before they were read, by their offsets."""
        self._first = 0
        self.open: Counter[int] = Counter()

    @property
    def _end(self) -> int:
        return self._base + len(self._marks)

    def add(self, offset: int, reason: int, seconds: int) -> None:
        if offset < self._end:
            return  # The offset was read again.
        if offset - self._end >= self._most:
            self.forget_before(offset)
        # Markers of transactions and compaction leave offsets without a record.
        gap = offset - self._end
        self._marks.extend(bytes(gap))
        self._times.extend([0] * gap)
        early = self._early.pop(offset, None)
        mark = reason if early is None or not _changes(reason, early) else early
        self._marks.append(mark)
        self._times.append(seconds)
        if _is_open(mark):
            self.open[mark & ~_SEALED] += 1
        if len(self._marks) > self._most:
            self.forget_before(self._end - self._most)

    def state(self, offset: int) -> LetterState | None:
        mark = self._marks[offset - self._base] if self._base <= offset < self._end else 0
        if mark == 0:
            return None
        return LetterState.OPEN if _is_open(mark) else _STATES[mark & ~_SEALED]

    def close(self, offset: int, mark: int) -> None:
        if offset >= self._end:
            if _changes(self._early.get(offset, 0), mark):
                self._early[offset] = mark
        elif offset >= self._base and (known := self._marks[offset - self._base]) and _changes(known, mark):
            if _is_open(known):
                self.open[known & ~_SEALED] -= 1
            self._marks[offset - self._base] = mark

    def forget_before(self, offset: int) -> None:
        if offset <= self._base:
            return
        count = min(offset - self._base, len(self._marks))
        self.open.subtract(mark & ~_SEALED for mark in self._marks[:count] if _is_open(mark))
        del self._marks[:count], self._times[:count]
        self._base = offset
        self._first = max(self._first - count, 0)
        self._early = {early: mark for early, mark in self._early.items() if early >= offset}

    def oldest(self) -> int | None:
        """Returns when the oldest open letter failed, in seconds since 1970; None if none is open.

        The letter that failed first is taken to be first in the partition, which is so but for moments.
        """
        # A closed letter never opens again, so that each is skipped once.
        while self._first < len(self._marks):
            if _is_open(self._marks[self._first]):
                return self._times[self._first]
            self._first += 1
        return None


def _is_open(mark: int) -> bool:
    return mark & ~_SEALED >= _FIRST_REASON


def _changes(known: int, mark: int) -> bool:
    """True if an audit entry with a mark changes what is known of its letter."""
    return bool(mark & _SEALED) or not known & _SEALED


class Backlog:
    """The open dead letters of one topic. For one thread."""

    def __init__(self, reasons: tuple[str, ...]) -> None:
        """Creates it empty; `reasons` are those counted apart, at most 123."""
        self._numbers = {name: number for number, name in enumerate((*reasons, OTHER), start=_FIRST_REASON)}
        self._partitions: dict[int, _Partition] = {}

    def begin(self, partition: int, offset: int, most: int = MOST) -> None:
        """Begins a partition at `offset`, from which `add` reports its letters.

        Of more than `most` the newest count.
        """
        self._partitions[partition] = _Partition(offset, most)

    def add(self, partition: int, offset: int, reason: str, time_ms: int, *, has_seal: bool = False) -> None:
        """Adds the dead letter at an offset. Offsets of a partition only grow; one that is known already is ignored.

        One with the bridge's seal is closed only by `close` with `is_sure`.
        """
        number = self._numbers.get(reason, self._numbers[OTHER]) | (_SEALED if has_seal else 0)
        seconds = min(max(time_ms // 1000, 0), _LATEST_SECONDS)
        self._partitions[partition].add(offset, number, seconds)

    def close(
        self, partition: int, offset: int, state: LetterState = LetterState.REPLAYED, *, is_sure: bool = True
    ) -> None:
        """Marks the letter at an offset as settled, also before `add` reports the letter."""
        if partition in self._partitions:
            self._partitions[partition].close(offset, _STATES.index(state) | (_SEALED if is_sure else 0))

    def state(self, partition: int, offset: int) -> LetterState | None:
        """Returns the state of the letter at an offset; None if no letter is known there."""
        return self._partitions[partition].state(offset) if partition in self._partitions else None

    def forget_before(self, partition: int, offset: int) -> None:
        """Drops the letters before an offset, which retention has removed."""
        self._partitions[partition].forget_before(offset)

    @property
    def open(self) -> dict[str, int]:
        """Number of open letters by reason, 0 included."""
        total: Counter[int] = Counter()
        for partition in self._partitions.values():
            total.update(partition.open)
        return {name: total[number] for name, number in self._numbers.items()}

    @property
    def oldest(self) -> float | None:
        """Time of the oldest open letter's failure, in whole seconds since 1970; None if none is open."""
        return min((oldest for p in self._partitions.values() if (oldest := p.oldest()) is not None), default=None)
