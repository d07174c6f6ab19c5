"""How far the reader of a topic is when messages end in any order: the oldest open one, and which behind it are done.

Kafka keeps one offset for a partition, and a short text with it. Where messages wait for somebody to take them, many
behind the oldest may be done; the text says which, so that after a restart none of those is sent a second time.
"""

from __future__ import annotations

import zlib
from base64 import b85decode, b85encode
from collections import OrderedDict, defaultdict, deque
from itertools import pairwise
from typing import TYPE_CHECKING

from routes.immutable import immutable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

__all__ = ["Position", "Positions"]

_MOST_CHARACTERS = 4000
"""Kafka takes 4096 by default, `offset.metadata.max.bytes`."""
_VERSION = "done:1:"
"""Begins the text."""


@immutable
class Position:
    """Where the next reader of a partition begins."""

    offset: int
    """Of the oldest open record; behind the last one where none is open."""
    text: str = ""
    """Which ones behind it are open, up to the last one taken; empty where all are."""


class Positions:
    """What was taken of each partition and is not dealt with yet. Memory is that of the open ones. For one thread."""

    def __init__(self) -> None:
        self._open: defaultdict[int, OrderedDict[int, None]] = defaultdict(OrderedDict)
        self._next: dict[int, int] = {}
        """Behind the last record of which something is known, by partition."""
        self._expected: dict[int, deque[int]] = {}
        """Open ones of an earlier reader that have not come yet."""
        self._last: dict[int, int] = {}
        """The last record that came, or the one before the first that may come."""
        self._moved: set[int] = set()
        self._cut: set[int] = set()

    @property
    def is_full(self) -> bool:
        """Whether there are more gaps than Kafka can be told of: nothing should be taken before some are closed."""
        return bool(self._cut)

    def knows(self, partition: int) -> bool:
        """Whether `recall` was called for it."""
        return partition in self._expected

    def recall(self, partition: int, position: Position) -> None:
        """What an earlier reader has committed; to be called before the first `take` of a partition."""
        open_, end = _decoded(position)
        self._open[partition] = OrderedDict.fromkeys(open_)
        self._expected[partition] = deque(open_)
        self._next[partition] = end
        self._last[partition] = position.offset - 1

    def take(self, partition: int, offset: int) -> bool:
        """A record has come, in the order of offsets; whether it is to be dealt with, and not done already."""
        if offset <= self._last.get(partition, -1):
            # It begins anew: Kafka has lost records, or the topic is another one of the same name.
            self.recall(partition, Position(offset))
        self._last[partition] = offset
        expected, open_ = self._expected.setdefault(partition, deque()), self._open[partition]
        while expected and expected[0] < offset:
            # Kafka does not have it any more.
            open_.pop(expected.popleft(), None)
        if offset < self._next.get(partition, 0):
            if not expected or expected[0] != offset:
                return False
            expected.popleft()
            return True
        open_[offset] = None
        self._next[partition] = offset + 1
        return True

    def done(self, partition: int, offset: int) -> None:
        """It was dealt with. One of a partition that was forgotten meanwhile does not count."""
        open_ = self._open.get(partition)
        if open_ is not None and offset in open_:
            del open_[offset]
            self._moved.add(partition)

    def moved(self) -> dict[int, Position]:
        """Those that changed since the last call, by partition."""
        moved, self._moved = self._moved, set()
        return {partition: self._position(partition) for partition in moved}

    def again(self) -> None:
        """What `moved` has told did not arrive: all partitions are told anew the next time."""
        self._moved.update(partition for partition in self._next if partition in self._open)

    def forget(self, partitions: Collection[int]) -> None:
        """They belong to somebody else now."""
        for partition in partitions:
            for each in (self._open, self._next, self._expected, self._last):
                each.pop(partition, None)
            self._moved.discard(partition)
            self._cut.discard(partition)

    def _position(self, partition: int) -> Position:
        open_, end = self._open[partition], self._next[partition]
        first = next(iter(open_), end)
        lengths = list(_lengths(open_, first, end))
        text = _encoded(first, lengths) if len(lengths) > 1 else ""
        self._cut.discard(partition)
        while len(text) > _MOST_CHARACTERS:
            # What lies behind would be sent again after a restart, so no more is taken.
            self._cut.add(partition)
            lengths = lengths[: len(lengths) // 2]
            text = _encoded(first, lengths)
        return Position(first, text)


def _lengths(open_: Iterable[int], first: int, end: int) -> Iterator[int]:
    """How many are open, done, open, and so on, from `first` to `end`."""
    run = 0
    for offset, following in pairwise((*open_, end)):
        run += 1
        if following != offset + 1:
            yield run
            yield following - offset - 1
            run = 0
    if run:
        yield run


def _encoded(first: int, lengths: Iterable[int]) -> str:
    """Seven bits a byte, the lowest first, as in Protocol Buffers; compressed. With the offset that it belongs to."""
    numbers = bytearray()
    for length in lengths:
        rest = length
        while rest > 0x7F:
            numbers.append(rest & 0x7F | 0x80)
            rest >>= 7
        numbers.append(rest)
    return f"{_VERSION}{first}:{b85encode(zlib.compress(numbers, 9)).decode()}"


def _decoded(position: Position) -> tuple[list[int], int]:
    """The open offsets, and where nothing is known any more."""
    at, length, shift = position.offset, 0, 0
    prefix = f"{_VERSION}{at}:"
    if not position.text.startswith(prefix):
        # Nobody's, somebody else's, or moved to another offset, as MirrorMaker does for another cluster.
        return [], at
    open_: list[int] = []
    is_open = True
    for byte in zlib.decompress(b85decode(position.text.removeprefix(prefix))):
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            if is_open:
                open_ += range(at, at + length)
            at, length, shift, is_open = at + length, 0, 0, not is_open
    return open_, at
