"""Counts of the open dead letters, those neither replayed nor put into quarantine nor discarded: five bytes for each.

Knows no Kafka: `watch` reads the topics and reports each record here.
"""

from __future__ import annotations

from array import array
from collections import Counter

__all__ = ["MOST", "OTHER", "Backlog"]

OTHER = "other"
"""Stands for a reason that the bridge does not know."""
MOST = 10_000_000
"""Greatest number of dead letters counted in a topic, the newest ones: 50 MB."""

_CLOSED = 0
"""Marks an offset without an open dead letter; other offsets hold the number of the reason, from 1."""
_SEALED = 0x80
"""Added to the number of the reason of a letter with a seal, which only a sure entry of the audit settles."""
_LATEST_SECONDS = 2**32 - 1


class _Partition:
    """The dead letters of one partition, by offset from `base` on."""

    def __init__(self, base: int, most: int) -> None:
        self._base = base
        self._most = most
        self._reasons = bytearray()
        self._times = array("I")
        self._early: dict[int, bool] = {}
        """Offsets of letters that were settled before they were read, and whether that is sure."""
        self._first = 0
        self.open: Counter[int] = Counter()

    @property
    def _end(self) -> int:
        return self._base + len(self._reasons)

    def add(self, offset: int, reason: int, seconds: int) -> None:
        if offset < self._end:
            return  # The offset was read again.
        if offset - self._end >= self._most:
            self.forget_before(offset)
        # Markers of transactions and compaction leave offsets without a record.
        gap = offset - self._end
        self._reasons.extend(bytes(gap))
        self._times.extend([0] * gap)
        if _settles(reason, self._early.pop(offset, None)):
            reason = _CLOSED
        self._reasons.append(reason)
        self._times.append(seconds)
        if reason != _CLOSED:
            self.open[reason & ~_SEALED] += 1
        if len(self._reasons) > self._most:
            self.forget_before(self._end - self._most)

    def is_open(self, offset: int) -> bool | None:
        if not self._base <= offset < self._end:
            return None
        return self._reasons[offset - self._base] != _CLOSED

    def close(self, offset: int, *, is_sure: bool) -> None:
        if offset >= self._end:
            self._early[offset] = is_sure or self._early.get(offset, False)
        elif offset >= self._base and _settles(reason := self._reasons[offset - self._base], is_sure):
            if reason != _CLOSED:
                self.open[reason & ~_SEALED] -= 1
            self._reasons[offset - self._base] = _CLOSED

    def forget_before(self, offset: int) -> None:
        if offset <= self._base:
            return
        count = min(offset - self._base, len(self._reasons))
        self.open.subtract(reason & ~_SEALED for reason in self._reasons[:count] if reason != _CLOSED)
        del self._reasons[:count], self._times[:count]
        self._base = offset
        self._first = max(self._first - count, 0)
        self._early = {early: is_sure for early, is_sure in self._early.items() if early >= offset}

    def oldest(self) -> int | None:
        """Returns when the oldest open letter failed, in seconds since 1970; None if none is open.

        The letter that failed first is taken to be first in the partition, which is so but for moments.
        """
        # A closed letter never opens again, so that each is skipped once.
        while self._first < len(self._reasons):
            if self._reasons[self._first] != _CLOSED:
                return self._times[self._first]
            self._first += 1
        return None


def _settles(reason: int, is_sure: bool | None) -> bool:
    """True if an audit entry settles a letter with the number of a reason; `is_sure` is None without an entry."""
    return bool(is_sure) or (is_sure is not None and not reason & _SEALED)


class Backlog:
    """The open dead letters of one topic. For one thread."""

    def __init__(self, reasons: tuple[str, ...]) -> None:
        """Creates it empty; `reasons` are those counted apart, at most 126."""
        self._numbers = {name: number for number, name in enumerate((*reasons, OTHER), start=1)}
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

    def close(self, partition: int, offset: int, *, is_sure: bool = True) -> None:
        """Marks the letter at an offset as settled, also before `add` reports the letter."""
        if partition in self._partitions:
            self._partitions[partition].close(offset, is_sure=is_sure)

    def is_open(self, partition: int, offset: int) -> bool | None:
        """Returns whether the letter at an offset is open; None if the offset is not known."""
        return self._partitions[partition].is_open(offset) if partition in self._partitions else None

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
        return min((found for p in self._partitions.values() if (found := p.oldest()) is not None), default=None)
