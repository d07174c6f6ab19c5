"""Filters of the ids in blocks of the journal: a search for an id need not read a block whose filter lacks it.

`jmsbridge.find.IdFilters` writes a filter for each block that a search reads as a whole. Filters are an aid:
without one, or with a damaged one, a block is read. A topic that was made anew has another id, and so another folder.
"""

from __future__ import annotations

import shutil
import time
import zlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from engine.find.header_names import header_names
from engine.find.stretches import PIECE
from engine.private import make_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine.find.stretches import Ranges

__all__ = ["IdFilters"]

_PAGE_BYTES, _SUM_BYTES = 4096, 4
_PAGE_BITS = (_PAGE_BYTES - _SUM_BYTES) * 8
_HASHES = 8
_BEGINNING = b"ID:"
_WORD = (1 << 64) - 1
_MOST_BYTES = 512 << 20
"""Most bytes of all filters of a journal; those of the oldest blocks go first."""


_LONG_SECONDS = 3600.0


class IdFilters:
    """Filters of one journal."""

    def __init__(self, place: Path, topic: str, topic_id: str) -> None:
        """Opens nothing yet; the filters are in a folder of `place` that has the name of the topic's id."""
        self._place = place.absolute()
        self._folder = self._place / topic_id.replace("/", "_")
        self._topic = topic
        self._id = topic_id

    def prepare(self, starts: Mapping[int, int]) -> bool:
        """Makes the folder; removes filters of other topics and of blocks that retention has removed, and surplus ones.

        Returns False if the folder cannot be used. `starts` are the first offsets of the journal's partitions.
        """
        try:
            make_folder(self._folder)
            for other in self._place.iterdir():
                if other != self._folder:
                    shutil.rmtree(other, ignore_errors=True)
            self._remove_unfinished()
            left, kept = _MOST_BYTES, sorted(self._files(), reverse=True)
            for start, partition, file, size in kept:
                left -= size
                if left < 0 or start + PIECE <= starts.get(partition, 0):
                    file.unlink(missing_ok=True)
        except OSError:
            return False
        return True

    def written(self) -> dict[str, object]:
        """What a writer of filters needs to know, see `jmsbridge.find.IdFilters`."""
        names = [*header_names("JMSMessageID"), *header_names("JMSCorrelationID")]
        return {"folder": str(self._folder), "topic": self._topic, "id": self._id, "block": PIECE, "names": names}

    def left(self, partition: int, ranges: Ranges, ids: tuple[str, ...]) -> Ranges:
        """Returns the parts of ranges that may have a record with all the ids, of each range the last one first."""
        return tuple(part for each in ranges for part in self._parts(partition, *each, ids))

    def _parts(self, partition: int, start: int, end: int, ids: tuple[str, ...]) -> Iterator[tuple[int, int]]:
        high = end
        for block in range((end - 1) // PIECE * PIECE, start - PIECE, -PIECE) if start < end else ():
            if any(self._lacks(partition, block, each) for each in ids):
                behind = min(block + PIECE, end)
                if behind < high:
                    yield behind, high
                high = max(block, start)
        if start < high:
            yield start, high

    def _lacks(self, partition: int, block: int, text: str) -> bool:
        """True if a block has a sound filter, and the filter lacks an id."""
        with suppress(OSError), (self._folder / f"{partition}-{block}").open("rb", buffering=0) as file:
            pages, rest = divmod(file.seek(0, 2), _PAGE_BYTES)
            if rest or not pages:
                return False
            step, page = divmod(_hash(text.encode("utf-8", "replace").removeprefix(_BEGINNING)), pages)
            file.seek(page * _PAGE_BYTES)
            content = file.read(_PAGE_BYTES)
            bits, found = content[:-_SUM_BYTES], int.from_bytes(content[-_SUM_BYTES:])
            if zlib.crc32(bits, zlib.crc32(f"{self._id} {partition} {block} {page} {pages}".encode())) != found:
                return False
            first, further = step & 0x7FFFFFFF, step >> 31 | 1
            places = ((first + number * further) % _PAGE_BITS for number in range(_HASHES))
            return not all(bits[place >> 3] >> (place & 7) & 1 for place in places)
        return False

    def _remove_unfinished(self) -> None:
        """Removes files of writers that have ended long ago before their files were whole."""
        for file in self._folder.glob("new*"):
            if file.stat().st_mtime < time.time() - _LONG_SECONDS:
                file.unlink(missing_ok=True)

    def _files(self) -> Iterator[tuple[int, int, Path, int]]:
        for file in self._folder.iterdir():
            partition, _, start = file.name.partition("-")
            if partition.isdecimal() and start.isdecimal():
                yield int(start), int(partition), file, file.stat().st_size


def _hash(content: bytes) -> int:
    """FNV-1a of 64 bits, mixed."""
    value = 0xCBF29CE484222325
    for each in content:
        value = (value ^ each) * 0x100000001B3 & _WORD
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    value = (value ^ value >> 27) * 0x94D049BB133111EB & _WORD
    return value ^ value >> 31
