"""Order in which a search reads partitions, backwards in stretches, and the token with which it goes on later."""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from engine.errors import UsageError

__all__ = ["NOTHING_READ", "PIECE", "Amounts", "Piece", "Ranges", "RecordPlace", "SearchState"]

_FIRST, _DOUBLINGS = 1_000, 3
"""Most offsets of each partition in the first stretch, and how often each further one doubles that."""
_FEW_LEFT = 3
"""Number of the first stretch after filters have left out most: short ones would only take time."""
PIECE = 1 << 17
"""Most offsets that one thread reads in one go; long pieces begin and end at multiples of it."""
_MANY, _MOST = 1 << 20, 1 << 22
"""Offsets of all partitions together in a long stretch of few partitions, and in any. Of many partitions, each stretch
reads some, in turn."""
_LONGEST_TOKEN = 1 << 22

Ranges = tuple[tuple[int, int], ...]
"""Offsets of a partition, each from one up to another one, in the order in which they are read."""
RecordPlace = tuple[int, str, int, int]
"""Time of a record in milliseconds, topic, partition and offset."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a partition that is read in one go."""

    topic: str
    partition: int
    start: int
    """First offset."""
    end: int
    """Offset behind the last one."""


@dataclass(frozen=True, slots=True)
class Amounts:
    """Amounts that a search has read: offsets, the records among them, and offsets that retention had removed."""

    read: int = 0
    records: int = 0
    removed: int = 0

    def plus(self, other: Amounts) -> Amounts:
        """Returns the sums."""
        return Amounts(self.read + other.read, self.records + other.records, self.removed + other.removed)


NOTHING_READ = Amounts()


@dataclass(frozen=True, slots=True)
class SearchState:
    """State of a search between two stretches: what is left to read, and what was read and found."""

    left: Mapping[tuple[str, int], Ranges]
    """Offsets of each partition of a topic that are not read yet; the last ones of the first range come first, and of
    many partitions the first ones."""
    total: int
    """Offsets of the whole question."""
    excluded: int = 0
    """Offsets among them that filters of ids have excluded, so that they need not be read."""
    number: int = 0
    """Number of the next stretch."""
    amounts: Amounts = NOTHING_READ
    found: int = 0
    """Records that were found and given."""
    after: RecordPlace | None = None
    """The last record of the next stretch that was given already; None if none of it was."""

    @staticmethod
    def begin(ranges: Mapping[tuple[str, int], Ranges], excluded: int = 0) -> SearchState:
        """Creates the state before the first stretch; empty ranges are left out, and `excluded` offsets were before."""
        left = {place: tuple(each for each in of if each[0] < each[1]) for place, of in ranges.items()}
        left = {place: of for place, of in left.items() if of}
        size = sum(end - start for of in left.values() for start, end in of)
        return SearchState(left, excluded + size, excluded, _FEW_LEFT if excluded else 0)

    def pieces(self) -> list[Piece]:
        """Returns the pieces of the next stretch, of each partition the last offsets first."""
        return list(self._pieces())

    def given(self, last: RecordPlace) -> SearchState:
        """Returns the state after one more record of the next stretch was given."""
        return replace(self, found=self.found + 1, after=last)

    def read(self, amounts: Amounts) -> SearchState:
        """Returns the state after the next stretch was read, and everything found in it was given."""
        places = list(self.left)
        due = places[: self._at_once]
        behind = {place: self._behind(self.left[place]) for place in due}
        left = {place: self.left[place] for place in places[len(due) :]} | behind
        left = {place: ranges for place, ranges in left.items() if ranges}
        return replace(self, left=left, number=self.number + 1, amounts=self.amounts.plus(amounts), after=None)

    def token(self, digest: str) -> str:
        """Returns the state as a text, for a question with a digest."""
        left = [[topic, partition, ranges] for (topic, partition), ranges in self.left.items()]
        amounts = [self.amounts.read, self.amounts.records, self.amounts.removed]
        content = [digest, left, self.total, self.excluded, self.number, amounts, self.found, self.after]
        packed = zlib.compress(json.dumps(content, separators=(",", ":")).encode(), 9)
        return base64.urlsafe_b64encode(packed).rstrip(b"=").decode()

    @staticmethod
    def of_token(token: str, digest: str) -> SearchState:
        """Reads a state; UsageError for any other text, and for a question with another digest."""
        try:
            content = json.loads(_unpacked(token))
            asked, left, total, excluded, number, amounts, found, after = content
            state = SearchState(
                {(str(topic), int(partition)): _ranges(ranges) for topic, partition, ranges in left},
                int(total),
                int(excluded),
                max(int(number), 0),
                Amounts(*map(int, amounts)),
                int(found),
                None if after is None else _place(*after),
            )
        except (ValueError, TypeError, zlib.error, binascii.Error, RecursionError) as error:
            msg = "the token is incomplete or none at all; copy the whole text behind --resume"
            raise UsageError(msg) from error
        if asked != digest:
            msg = "the token is of another question; repeat the search with the options with which it was given"
            raise UsageError(msg)
        return state

    def _pieces(self) -> Iterator[Piece]:
        for (topic, partition), ranges in islice(self.left.items(), self._at_once):
            start, end = self._next(ranges)
            while start < end:
                begin = max(start, (end - 1) // PIECE * PIECE)
                yield Piece(topic, partition, begin, end)
                end = begin

    @property
    def _length(self) -> int:
        """Most offsets of a partition in the next stretch."""
        return min(_FIRST << _DOUBLINGS * min(self.number, 10), max(_MANY // max(len(self.left), 1), PIECE))

    @property
    def _at_once(self) -> int:
        """Most partitions in the next stretch."""
        return _MOST // self._length

    def _next(self, ranges: Ranges) -> tuple[int, int]:
        """The offsets of a partition that the next stretch has."""
        start, end = ranges[0]
        first = end - self._length
        if self._length >= PIECE:
            first = -(-first // PIECE) * PIECE
        return max(start, first), end

    def _behind(self, ranges: Ranges) -> Ranges:
        """The ranges of a partition that are left after the next stretch."""
        start, _ = self._next(ranges)
        first = ranges[0][0]
        return ((first, start), *ranges[1:]) if first < start else ranges[1:]


def _unpacked(token: str) -> bytes:
    packed = base64.urlsafe_b64decode(token.encode("ascii") + b"=" * (-len(token) % 4))
    unpacking = zlib.decompressobj()
    content = unpacking.decompress(packed, _LONGEST_TOKEN)
    if not unpacking.eof:
        msg = "it is cut, or far too long"
        raise ValueError(msg)
    return content


def _ranges(given: Any) -> Ranges:
    ranges = tuple((int(start), int(end)) for start, end in given)
    if not ranges or any(not 0 <= start < end for start, end in ranges):
        msg = "a range is empty"
        raise ValueError(msg)
    return ranges


def _place(time_ms: Any, topic: Any, partition: Any, offset: Any) -> RecordPlace:
    return int(time_ms), str(topic), int(partition), int(offset)
