"""Tests of the bitmaps of positions, and of how outputs are cut into slices."""

from __future__ import annotations

from engine.router.published import Bucket, Published, records, slices

STARTS = {"a": {0: 10, 1: 0}, "b": {0: 5}, "empty": {0: 7}}
ENDS = {"a": {0: 110, 1: 3}, "b": {0: 5 + 47}, "empty": {0: 7}}


def test_slices_are_all_of_it_without_a_gap_and_about_as_large_as_wanted() -> None:
    found = list(slices(STARTS, ENDS, 40, 1))
    assert records(STARTS, ENDS) == 150
    assert len(found) == 4
    assert all(36 <= records(*each) <= 40 for each in found)
    assert sum(records(*each) for each in found) == 150
    assert found[0][0] == {"a": {0: 10, 1: 0}, "b": {0: 5}}
    assert found[-1][1] == {"a": {0: 110, 1: 3}, "b": {0: 52}}
    assert [ends for _, ends in found[:-1]] == [starts for starts, _ in found[1:]]


def test_few_records_are_one_slice_and_none_are_none() -> None:
    assert len(list(slices(STARTS, ENDS, 1000, 1))) == 1
    assert list(slices(ENDS, ENDS, 1000, 1)) == []


def test_a_slice_of_many_partitions_has_enough_records_of_each() -> None:
    starts = {f"t{topic}": dict.fromkeys(range(10), 0) for topic in range(100)}
    ends = {topic: dict.fromkeys(offsets, 5_000) for topic, offsets in starts.items()}
    found = list(slices(starts, ends, 20_000, 500))
    assert [records(*each) for each in found] == [500_000] * 10


def test_what_is_in_either_is_in_both_together() -> None:
    one = Published((Bucket(0, 0, b"\x01\x00", 8), Bucket(0, 1, b"\x80\x00", 32775)))
    other = Published((Bucket(0, 0, b"\x03\x80", 15), Bucket(1, 0, b"\x01\x00", 0)))
    both = one | other
    assert set(both.rows) == {
        Bucket(0, 0, b"\x03\x80", 15),
        Bucket(0, 1, b"\x80\x00", 32775),
        Bucket(1, 0, b"\x01\x00", 0),
    }
    assert both.count == 5
    assert both.highest == {0: 32775, 1: 0}
    assert both | Published() == both == Published() | both
