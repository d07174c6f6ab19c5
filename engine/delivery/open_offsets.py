"""Committed positions of a reader whose records are dealt with in any order.

A position is the oldest open record, and the list of those done behind it. Kafka keeps one offset and a short text for
each partition. Where messages wait until a client takes them, many behind the oldest may be done. The text says which,
so that none of those is sent a second time after a restart.
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

__all__ = ["CommittedPosition", "OpenOffsets"]

_MOST_CHARACTERS = 4000
"""Longest text in characters; brokers accept 4096 bytes by default (`offset.metadata.max.bytes`)."""
_VERSION = "done:1:"
"""Prefix of the text."""


@immutable
class CommittedPosition:
    """Position at which the next reader of a partition begins."""

    offset: int
    """Offset of the oldest open record, or the offset behind the last record if none is open."""
    text: str = ""
    """Encoded list of the records that are open, from `offset` up to the last record taken; empty if all of these are
    open."""


class OpenOffsets:
    """Open records of each partition: taken, but not dealt with yet. For one thread.

    Memory grows with the number of open records only.
    """

    def __init__(self) -> None:
        self._open: defaultdict[int, OrderedDict[int, None]] = defaultdict(OrderedDict)
        self._next: dict[int, int] = {}
        """Offset behind the last record with a known state, by partition."""
        self._expected: dict[int, deque[int]] = {}
        """Offsets that an earlier reader left open and that have not arrived yet, by partition."""
        self._last: dict[int, int] = {}
        """Offset of the last record that arrived, or the one before the first that may arrive, by partition."""
        self._moved: set[int] = set()
        self._cut: set[int] = set()

    @property
    def is_full(self) -> bool:
        """True if the text cannot hold all the gaps between done records: take nothing more before some are closed."""
        return bool(self._cut)

    def knows(self, partition: int) -> bool:
        """Returns True if `recall` was called for the partition."""
        return partition in self._expected

    def recall(self, partition: int, position: CommittedPosition) -> None:
        """Restores the position that an earlier reader committed; called before a partition's first `take`."""
        open_, end = _decoded(position)
        self._open[partition] = OrderedDict.fromkeys(open_)
        self._expected[partition] = deque(open_)
        self._next[partition] = end
        self._last[partition] = position.offset - 1

    def take(self, partition: int, offset: int) -> bool:
        """Notes the arrival of a record, in the order of offsets; False if it was dealt with before."""
        if offset <= self._last.get(partition, -1):
            # The offsets start again: Kafka has lost records, or the topic was replaced by another of the same name.
            self.recall(partition, CommittedPosition(offset))
        self._last[partition] = offset
        expected, open_ = self._expected.setdefault(partition, deque()), self._open[partition]
        while expected and expected[0] < offset:
            # Kafka no longer has this record.
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
        """Notes that a record was dealt with; has no effect if its partition was forgotten meanwhile."""
        open_ = self._open.get(partition)
        if open_ is not None and offset in open_:
            del open_[offset]
            self._moved.add(partition)

    def moved(self) -> dict[int, CommittedPosition]:
        """Returns the positions that have changed since the last call, by partition."""
        moved, self._moved = self._moved, set()
        return {partition: self._position(partition) for partition in moved}

    def again(self) -> None:
        """Makes the next `moved` return all partitions, because a commit did not arrive."""
        self._moved.update(partition for partition in self._next if partition in self._open)

    def forget(self, partitions: Collection[int]) -> None:
        """Forgets partitions that now belong to another reader."""
        for partition in partitions:
            for each in (self._open, self._next, self._expected, self._last):
                each.pop(partition, None)
            self._moved.discard(partition)
            self._cut.discard(partition)

    def _position(self, partition: int) -> CommittedPosition:
        open_, end = self._open[partition], self._next[partition]
        first = next(iter(open_), end)
        lengths = list(_lengths(open_, end))
        text = _encoded(first, lengths) if len(lengths) > 1 else ""
        self._cut.discard(partition)
        while len(text) > _MOST_CHARACTERS:
            # Records done behind the cut would be sent again after a restart, so `is_full` stops the taking.
            self._cut.add(partition)
            lengths = lengths[: len(lengths) // 2]
            text = _encoded(first, lengths)
        return CommittedPosition(first, text)


def _lengths(open_: Iterable[int], end: int) -> Iterator[int]:
    """Yields the lengths of alternating runs of open and done records up to `end`; the first run is open."""
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
    """Encodes the run lengths that start at offset `first`; the text contains that offset.

    Each length is a base-128 varint, lowest seven bits first as in Protocol Buffers; the whole is compressed.
    """
    numbers = bytearray()
    for length in lengths:
        rest = length
        while rest > 0x7F:
            numbers.append(rest & 0x7F | 0x80)
            rest >>= 7
        numbers.append(rest)
    return f"{_VERSION}{first}:{b85encode(zlib.compress(numbers, 9)).decode()}"


def _decoded(position: CommittedPosition) -> tuple[list[int], int]:
    """Decodes the open offsets, and the offset from which nothing is known."""
    at, length, shift = position.offset, 0, 0
    prefix = f"{_VERSION}{at}:"
    if not position.text.startswith(prefix):
        # No text, a text of another program, or a text moved to another offset, as MirrorMaker does between clusters.
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
