"""Which dead letters are open, neither replayed nor put into quarantine nor discarded: counted in five bytes for each.

Knows no Kafka: `watch` reads the topics and tells it.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["MOST", "OTHER", "Backlog", "Census", "Latest"]

OTHER = "other"
"""In place of a reason that the bridge does not know."""
MOST = 10_000_000
"""Of more dead letters than this in a topic only the newest are counted: 50 MB."""

_CLOSED = 0
"""Of an offset without an open dead letter; else the number of its reason, from 1."""
_LATEST_SECONDS = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Latest:
    """The newest dead letter of a route."""

    time_ms: int
    """When it failed, in milliseconds since 1970."""
    reason: str
    detail: str
    """The reason in a sentence."""
    place: str
    """`partition:offset`."""


@dataclass(frozen=True, slots=True)
class Census:
    """What is known of the dead letters at a moment."""

    topic: str
    reachable: bool = False
    """Whether Kafka lets the bridge see the topic."""
    trouble: str = ""
    """Why not, or why nothing can be counted; one line."""
    open: Mapping[str, int] | None = None
    """Open dead letters by reason, those in quarantine left out; None: not counted yet."""
    oldest: float | None = None
    """When the oldest of them failed, in seconds since 1970; None without one."""
    quarantined: int | None = None
    """Open ones in quarantine; None: not counted yet."""
    latest: Mapping[str, Latest] = field(default_factory=dict)
    """By route the newest dead letter, settled or not."""

    @property
    def depth(self) -> int | None:
        """How many are open; None: not counted yet."""
        return None if self.open is None else sum(self.open.values())

    def oldest_age(self, now: float) -> float:
        """Age of the oldest one in seconds at `now` (since 1970); 0 without one."""
        return 0.0 if self.oldest is None else max(now - self.oldest, 0.0)


class _Partition:
    """The dead letters of one partition, by offset from `base` on."""

    def __init__(self, base: int, most: int) -> None:
        self._base = base
        self._most = most
        self._reasons = bytearray()
        self._times = array("I")
        self._early: set[int] = set()
        self._first = 0
        self.open: Counter[int] = Counter()

    @property
    def _end(self) -> int:
        return self._base + len(self._reasons)

    def add(self, offset: int, reason: int, seconds: int) -> None:
        if offset < self._end:
            return  # Read again.
        if offset - self._end >= self._most:
            self.forget_before(offset)
        # Markers of transactions and compaction leave offsets without a record.
        gap = offset - self._end
        self._reasons.extend(bytes(gap))
        self._times.extend([0] * gap)
        if offset in self._early:
            self._early.discard(offset)
            reason = _CLOSED
        self._reasons.append(reason)
        self._times.append(seconds)
        if reason != _CLOSED:
            self.open[reason] += 1
        if len(self._reasons) > self._most:
            self.forget_before(self._end - self._most)

    def is_open(self, offset: int) -> bool | None:
        if not self._base <= offset < self._end:
            return None
        return self._reasons[offset - self._base] != _CLOSED

    def close(self, offset: int) -> None:
        if offset >= self._end:
            self._early.add(offset)
        elif offset >= self._base and (reason := self._reasons[offset - self._base]) != _CLOSED:
            self._reasons[offset - self._base] = _CLOSED
            self.open[reason] -= 1

    def forget_before(self, offset: int) -> None:
        if offset <= self._base:
            return
        count = min(offset - self._base, len(self._reasons))
        self.open.subtract(reason for reason in self._reasons[:count] if reason != _CLOSED)
        del self._reasons[:count], self._times[:count]
        self._base = offset
        self._first = max(self._first - count, 0)
        self._early = {early for early in self._early if early >= offset}

    def oldest(self) -> int | None:
        """Seconds since 1970. What failed first is taken to be first in the partition, which is so but for moments."""
        # A closed one never opens again, so that each is passed over once.
        while self._first < len(self._reasons):
            if self._reasons[self._first] != _CLOSED:
                return self._times[self._first]
            self._first += 1
        return None


class Backlog:
    """The open dead letters of one topic. For one thread."""

    def __init__(self, reasons: tuple[str, ...]) -> None:
        """`reasons` are those told apart, at most 254."""
        self._numbers = {name: number for number, name in enumerate((*reasons, OTHER), start=1)}
        self._partitions: dict[int, _Partition] = {}

    def begin(self, partition: int, offset: int, most: int = MOST) -> None:
        """What stands in the partition from there on will be told; of more than `most` the newest count."""
        self._partitions[partition] = _Partition(offset, most)

    def add(self, partition: int, offset: int, reason: str, time_ms: int) -> None:
        """A dead letter stands there. Offsets of a partition only grow; one that is known already is passed over."""
        number = self._numbers.get(reason, self._numbers[OTHER])
        seconds = min(max(time_ms // 1000, 0), _LATEST_SECONDS)
        self._partitions[partition].add(offset, number, seconds)

    def close(self, partition: int, offset: int) -> None:
        """The one there is settled, or will be as soon as it comes."""
        if partition in self._partitions:
            self._partitions[partition].close(offset)

    def is_open(self, partition: int, offset: int) -> bool | None:
        """Whether the one there is open; None where none is known."""
        return self._partitions[partition].is_open(offset) if partition in self._partitions else None

    def forget_before(self, partition: int, offset: int) -> None:
        """Retention has removed what stood before."""
        self._partitions[partition].forget_before(offset)

    @property
    def open(self) -> dict[str, int]:
        """How many are open, by reason, 0 included."""
        total: Counter[int] = Counter()
        for partition in self._partitions.values():
            total.update(partition.open)
        return {name: total[number] for name, number in self._numbers.items()}

    @property
    def oldest(self) -> float | None:
        """When the oldest open one failed, in whole seconds since 1970."""
        return min((found for p in self._partitions.values() if (found := p.oldest()) is not None), default=None)
