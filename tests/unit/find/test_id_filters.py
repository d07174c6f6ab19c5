"""Filters of ids: what they exclude, and that a damaged or foreign one excludes nothing."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.find import id_filters
from engine.find.id_filters import IdFilters
from engine.find.stretches import PIECE, Piece

if TYPE_CHECKING:
    from collections.abc import Iterable

TOPIC_ID = "E+XdAH/CThqe8K2NvopNJA"
BITS = 4092 * 8


def write(folder: Path, partition: int, block: int, ids: Iterable[str], pages: int = 3) -> Path:
    """Writes a filter as `jmsbridge.find.IdFilters` does."""
    content = [bytearray(4092) for _ in range(pages)]
    for each in ids:
        step, page = divmod(id_filters._hash(each.encode()), pages)
        first, further = step & 0x7FFFFFFF, step >> 31 | 1
        for number in range(8):
            bit = (first + number * further) % BITS
            content[page][bit // 8] |= 1 << bit % 8
    sums = (
        zlib.crc32(bits, zlib.crc32(f"{TOPIC_ID} {partition} {block} {page} {pages}".encode()))
        for page, bits in enumerate(content)
    )
    file = folder / f"{partition}-{block}"
    file.write_bytes(b"".join(bytes(bits) + found.to_bytes(4) for bits, found in zip(content, sums, strict=True)))
    return file


@pytest.fixture
def filters(tmp_path: Path) -> IdFilters:
    made = IdFilters(tmp_path / "find", {"journal": TOPIC_ID, "old": ""})
    assert made.prepare({})
    return made


def folder(filters: IdFilters) -> Path:
    topics: Any = filters.written()["topics"]
    return Path(topics["journal"]["folder"])


def test_blocks_without_the_id_are_left_out(filters: IdFilters) -> None:
    for block, ids in enumerate((["a", "b"], ["c"], ["a", "c"], [])):
        write(folder(filters), 0, block * PIECE, ids)
    given = ((5, 6 * PIECE + 7),)
    assert filters.left(("journal", 0), given, ("a",)) == (
        (4 * PIECE, 6 * PIECE + 7),
        (2 * PIECE, 3 * PIECE),
        (5, PIECE),
    )
    assert filters.left(("journal", 0), given, ("ID:b", "a")) == ((4 * PIECE, 6 * PIECE + 7), (5, PIECE))
    assert filters.left(("journal", 0), given, ("nobody",)) == ((4 * PIECE, 6 * PIECE + 7),)
    assert filters.left(("journal", 1), given, ("nobody",)) == given
    assert filters.left(("old", 0), given, ("nobody",)) == given
    assert filters.left(("journal", 0), ((7, 9), (PIECE, PIECE)), ("nobody",)) == ()


@given(st.sets(st.text(max_size=40).filter(lambda text: not text.startswith("ID:")), max_size=200))
def test_an_id_that_is_there_is_never_excluded(tmp_path_factory: pytest.TempPathFactory, ids: set[str]) -> None:
    made = IdFilters(tmp_path_factory.getbasetemp() / "find", {"journal": TOPIC_ID})
    assert made.prepare({})
    write(folder(made), 0, 0, ids)
    for each in ids:
        assert made.left(("journal", 0), ((0, 10),), (each,)) == ((0, 10),)


@pytest.mark.parametrize("damage", ["cut", "page", "bit", "moved", "empty"])
def test_a_damaged_filter_excludes_nothing(filters: IdFilters, damage: str) -> None:
    file = write(folder(filters), 0, 0, ["a"])
    content = file.read_bytes()
    assert filters.left(("journal", 0), ((0, 10),), ("b",)) == ()
    if damage == "moved":
        file.rename(folder(filters) / f"1-{PIECE}")
        assert filters.left(("journal", 1), ((PIECE, PIECE + 10),), ("b",)) == ((PIECE, PIECE + 10),)
        return
    changed = {"cut": content[:-1], "page": content[:-4096], "bit": bytes(each ^ 1 for each in content), "empty": b""}
    file.write_bytes(changed[damage])
    assert filters.left(("journal", 0), ((0, 10),), ("b",)) == ((0, 10),)


def test_filters_of_another_topic_and_of_removed_blocks_go(tmp_path: Path, filters: IdFilters) -> None:
    other = tmp_path / "find" / "other"
    other.mkdir()
    old, kept = (write(folder(filters), 0, block, ["a"]) for block in (0, PIECE))
    assert filters.prepare({"journal": {0: PIECE + 3}})
    assert not other.exists()
    assert not old.exists()
    assert kept.exists()


def test_the_oldest_filters_go_when_there_are_too_many(filters: IdFilters, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [write(folder(filters), 0, block * PIECE, ["a"]) for block in range(4)]
    monkeypatch.setattr(id_filters, "_MOST_BYTES", 2 * files[0].stat().st_size)
    assert filters.prepare({})
    assert [file.exists() for file in files] == [False, False, True, True]


def test_whole_blocks_without_a_filter_are_missing_the_highest_first(filters: IdFilters) -> None:
    write(folder(filters), 0, 2 * PIECE, ["a"])
    starts, ends = (
        {"journal": {0: 5, 1: 0}, "old": {0: 0}},
        {"journal": {0: 4 * PIECE - 1, 1: PIECE}, "old": {0: PIECE}},
    )
    assert filters.missing(starts, ends) == [
        Piece("journal", 0, PIECE, 2 * PIECE),
        Piece("journal", 1, 0, PIECE),
    ]
    assert filters.missing({}, {}) == []


def test_where_room_is_short_only_filters_of_higher_offsets_are_missing(
    filters: IdFilters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(id_filters, "_MOST_BYTES", 3 * 4096)
    monkeypatch.setattr(id_filters, "_RESERVE", 4096)
    starts, ends = {"journal": {0: 0}}, {"journal": {0: 4 * PIECE}}
    write(folder(filters), 0, PIECE, ["a"])
    write(folder(filters), 0, 2 * PIECE, ["a"])
    assert [piece.start // PIECE for piece in filters.missing(starts, ends)] == [3]
    write(folder(filters), 0, 3 * PIECE, ["a"])
    assert filters.prepare(starts)
    assert [piece.start // PIECE for piece in filters.missing(starts, ends)] == []


def test_a_folder_that_cannot_be_made_has_no_filters(tmp_path: Path) -> None:
    (tmp_path / "find").write_text("a file")
    assert not IdFilters(tmp_path / "find", {"journal": TOPIC_ID, "old": ""}).prepare({})
