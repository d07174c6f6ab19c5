"""Filters of the ids in blocks of partitions: a search for an id need not read a block whose filter lacks it.

`jmsbridge.find.IdFilters` writes a filter for each block that a search, or `filter_upkeep`, reads as a whole. Filters
are an aid: without one, or with a damaged one, a block is read. A topic that was made anew has another id, and so
another folder.
"""

from __future__ import annotations

import shutil
import time
import zlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from engine.find.header_names import header_names
from engine.find.stretches import PIECE, Piece
from engine.private import make_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from engine.find.stretches import Ranges
    from engine.kafka.offsets import KafkaOffsets, Place, Topics

__all__ = ["IdFilters"]

_PAGE_BYTES, _SUM_BYTES = 4096, 4
_PAGE_BITS = (_PAGE_BYTES - _SUM_BYTES) * 8
_HASHES = 8
_BEGINNING = b"ID:"
_WORD = (1 << 64) - 1
_MOST_BYTES = 512 << 20
"""Most bytes of all filters of a bridge; those of the lowest offsets go first."""
_RESERVE = 16 << 20
"""Bytes below that limit from which on filters of lower offsets give way."""
_LONG_SECONDS = 3600.0


class IdFilters:
    """Filters of the topics of a bridge."""

    def __init__(self, place: Path, topics: Mapping[str, str]) -> None:
        """Opens nothing yet; `topics` are Kafka's ids of topics by name. Those without an id have no filters."""
        self._place = place.absolute()
        self._ids = {topic: topic_id for topic, topic_id in topics.items() if topic_id}

    @staticmethod
    def opened(data: Path, kafka: KafkaOffsets, topics: Iterable[str]) -> IdFilters | None:
        """Prepares the filters of topics of a bridge with a data folder; None if their folder cannot be used.

        Raises what `KafkaOffsets` does.
        """
        facts = kafka.topics(topics)
        filters = IdFilters(data / "find", {topic: found.id for topic, found in facts.items()})
        return filters if filters.prepare(kafka.starts(facts)) else None

    def prepare(self, starts: Topics) -> bool:
        """Makes the folders; removes filters of other topics, of blocks that retention has removed, and surplus ones.

        Returns False if the folders cannot be used. `starts` are the first offsets of the partitions.
        """
        folders = {self._folder(topic): topic for topic in self._ids}
        try:
            make_folder(self._place)
            for other in self._place.iterdir():
                if other not in folders:
                    shutil.rmtree(other, ignore_errors=True)
            found = []
            for folder, topic in folders.items():
                make_folder(folder)
                found += [each for each in _files(folder) if _is_kept(each, starts.get(topic, {}))]
            size = 0
            # The lowest offsets first, of all topics alike.
            for file in sorted(found, key=lambda each: each.start, reverse=True):
                size += file.path.stat().st_size
                if size > _MOST_BYTES:
                    file.path.unlink(missing_ok=True)
        except OSError:
            return False
        return True

    def written(self) -> dict[str, object]:
        """Facts that a writer of filters needs, see `jmsbridge.find.IdFilters`."""
        topics = {topic: {"folder": str(self._folder(topic)), "id": each} for topic, each in self._ids.items()}
        names = [*header_names("JMSMessageID"), *header_names("JMSCorrelationID")]
        return {"block": PIECE, "names": names, "topics": topics}

    def missing(self, starts: Topics, ends: Topics) -> list[Piece]:
        """Returns the whole blocks without a filter for which there is room, those with the highest offsets first.

        `starts` and `ends` are the first offsets of the partitions, and those behind the last ones.
        """
        found = {topic: list(_files(self._folder(topic))) for topic in self._ids}
        size = sum(each.path.stat().st_size for files in found.values() for each in files)
        # Where room is short, the filters of lower offsets go for those of higher ones.
        lowest = min(each.start for files in found.values() for each in files) if size > _MOST_BYTES - _RESERVE else -1
        due = []
        for topic, files in found.items():
            known = {(each.partition, each.start) for each in files}
            for partition, end in ends.get(topic, {}).items():
                first = -(-starts.get(topic, {}).get(partition, end) // PIECE) * PIECE
                blocks = range(first, end - PIECE + 1, PIECE)
                due += [
                    Piece(topic, partition, block, block + PIECE)
                    for block in blocks
                    if block > lowest and (partition, block) not in known
                ]
        return sorted(due, key=lambda piece: piece.start, reverse=True)

    def left(self, place: Place, ranges: Ranges, ids: tuple[str, ...]) -> Ranges:
        """Returns the parts of ranges that may have a record with all the ids, of each range the last one first."""
        return tuple(part for each in ranges for part in self._parts(place, *each, ids))

    def _parts(self, place: Place, start: int, end: int, ids: tuple[str, ...]) -> Iterator[tuple[int, int]]:
        high = end
        for block in range((end - 1) // PIECE * PIECE, start - PIECE, -PIECE) if start < end else ():
            if any(self._lacks(place, block, each) for each in ids):
                behind = min(block + PIECE, end)
                if behind < high:
                    yield behind, high
                high = max(block, start)
        if start < high:
            yield start, high

    def _lacks(self, place: Place, block: int, text: str) -> bool:
        """True if a block has a sound filter, and the filter lacks an id."""
        topic, partition = place
        if topic not in self._ids:
            return False
        with suppress(OSError), (self._folder(topic) / f"{partition}-{block}").open("rb", buffering=0) as file:
            pages, rest = divmod(file.seek(0, 2), _PAGE_BYTES)
            if rest or not pages:
                return False
            step, page = divmod(_hash(text.encode("utf-8", "replace").removeprefix(_BEGINNING)), pages)
            file.seek(page * _PAGE_BYTES)
            content = file.read(_PAGE_BYTES)
            bits, found = content[:-_SUM_BYTES], int.from_bytes(content[-_SUM_BYTES:])
            if zlib.crc32(bits, zlib.crc32(f"{self._ids[topic]} {partition} {block} {page} {pages}".encode())) != found:
                return False
            first, further = step & 0x7FFFFFFF, step >> 31 | 1
            places = ((first + number * further) % _PAGE_BITS for number in range(_HASHES))
            return not all(bits[place >> 3] >> (place & 7) & 1 for place in places)
        return False

    def _folder(self, topic: str) -> Path:
        return self._place / self._ids[topic].replace("/", "_")


class _FilterFile(NamedTuple):
    path: Path
    partition: int
    start: int
    """First offset of the block."""


def _files(folder: Path) -> Iterator[_FilterFile]:
    """The filters in a folder; removes files that a writer has begun long ago and not finished."""
    for file in folder.iterdir():
        partition, _, start = file.name.partition("-")
        if partition.isdecimal() and start.isdecimal():
            yield _FilterFile(file, int(partition), int(start))
        elif file.stat().st_mtime < time.time() - _LONG_SECONDS:
            file.unlink(missing_ok=True)


def _is_kept(file: _FilterFile, starts: Mapping[int, int]) -> bool:
    """True unless retention has removed the whole block; then the file is removed as well."""
    if file.start + PIECE > starts.get(file.partition, 0):
        return True
    file.path.unlink(missing_ok=True)
    return False


def _hash(content: bytes) -> int:
    """FNV-1a of 64 bits, mixed."""
    value = 0xCBF29CE484222325
    for each in content:
        value = (value ^ each) * 0x100000001B3 & _WORD
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    value = (value ^ value >> 27) * 0x94D049BB133111EB & _WORD
    return value ^ value >> 31
