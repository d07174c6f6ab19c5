"""How far a sink's topic is dealt with, when messages end in any order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.delivery.open_offsets import CommittedPosition, OpenOffsets


def test_an_offset_moves_only_over_what_is_done() -> None:
    positions = OpenOffsets()
    for offset in (5, 6, 7):
        assert positions.take(0, offset)
    positions.done(0, 5)
    assert positions.moved() == {0: CommittedPosition(6)}
    assert positions.moved() == {}
    positions.done(0, 7)
    assert positions.moved()[0].offset == 6
    positions.done(0, 6)
    assert positions.moved() == {0: CommittedPosition(8)}


def test_a_partition_that_was_given_away_is_not_committed() -> None:
    positions = OpenOffsets()
    positions.take(0, 1)
    positions.take(1, 1)
    positions.forget([0])
    positions.done(0, 1)
    positions.done(1, 1)
    assert positions.moved() == {1: CommittedPosition(2)}
    positions.again()
    assert positions.moved() == {1: CommittedPosition(2)}


def test_what_did_not_arrive_is_told_again() -> None:
    positions = OpenOffsets()
    positions.take(0, 1)
    positions.done(0, 1)
    told = positions.moved()
    positions.again()
    assert positions.moved() == told


def test_one_that_waits_does_not_bring_back_what_is_done_behind_it() -> None:
    positions = OpenOffsets()
    for offset in range(10_000):
        positions.take(0, offset)
    for offset in range(1, 10_000):
        positions.done(0, offset)
    position = positions.moved()[0]
    assert position.offset == 0

    after = OpenOffsets()
    after.recall(0, position)
    assert [offset for offset in range(10_002) if after.take(0, offset)] == [0, 10_000, 10_001]
    after.done(0, 0)
    assert after.moved() == {0: CommittedPosition(10_000)}


def test_more_gaps_than_kafka_can_be_told_of_are_full_until_some_are_closed() -> None:
    positions = OpenOffsets()
    gap = 1
    waiting, offset = [], 0
    for number in range(5_000):
        waiting.append(offset)
        gap = gap * 48_271 % 2_147_483_647
        offset += 2 + gap % 1_000
        for taken in range(waiting[-1], offset):
            positions.take(0, taken)
            if taken != waiting[-1]:
                positions.done(0, taken)
        if number % 100 == 0 and positions.moved() and positions.is_full:
            break
    else:
        pytest.fail("5,000 gaps of random size fit into 4 KB")
    positions.again()
    assert len(positions.moved()[0].text) <= 4000
    for each in waiting:
        positions.done(0, each)
    assert positions.moved() == {0: CommittedPosition(offset)}
    assert not positions.is_full


def test_what_somebody_else_has_written_beside_an_offset_says_nothing() -> None:
    positions = OpenOffsets()
    positions.recall(0, CommittedPosition(5, "reset by hand"))
    assert positions.take(0, 5)


def test_a_text_that_came_to_another_offset_says_nothing() -> None:
    positions = OpenOffsets()
    for offset in range(10):
        positions.take(0, offset)
    positions.done(0, 5)
    positions.done(0, 0)
    text = positions.moved()[0].text
    assert text
    after = OpenOffsets()
    after.recall(0, CommittedPosition(3, text))
    assert all(after.take(0, offset) for offset in range(3, 20))


def test_a_topic_that_is_made_anew_under_a_reader_has_nothing_that_is_done() -> None:
    positions = OpenOffsets()
    for offset in range(100):
        positions.take(0, offset)
        positions.done(0, offset)
    assert all(positions.take(0, offset) for offset in range(5))
    positions.done(0, 0)
    assert positions.moved()[0].offset == 1


def test_a_topic_that_begins_anew_has_nothing_that_is_done() -> None:
    positions = OpenOffsets()
    for offset in range(100, 110):
        positions.take(0, offset)
    positions.done(0, 105)
    after = OpenOffsets()
    after.recall(0, positions.moved()[0])
    assert all(after.take(0, offset) for offset in range(120))


def test_an_open_one_that_kafka_has_no_more_is_not_waited_for() -> None:
    positions = OpenOffsets()
    for offset in (0, 1, 2, 3):
        positions.take(0, offset)
    positions.done(0, 1)
    positions.done(0, 3)
    after = OpenOffsets()
    after.recall(0, positions.moved()[0])
    assert not after.take(0, 3)
    assert after.take(0, 4)
    after.done(0, 4)
    assert after.moved() == {0: CommittedPosition(5)}


@given(st.data())
def test_nothing_is_skipped_and_at_the_end_all_is_committed(data: st.DataObject) -> None:
    taken = data.draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30)), unique=True))
    positions = OpenOffsets()
    for partition, offset in sorted(taken):
        assert positions.take(partition, offset)
    committed: dict[int, int] = {}
    done: set[tuple[int, int]] = set()
    for place in data.draw(st.permutations(taken)):
        positions.done(*place)
        done.add(place)
        committed |= {partition: moved.offset for partition, moved in positions.moved().items()}
        assert all(place in done for place in taken if place[1] < committed.get(place[0], 0))
    assert committed == {p: max(o for q, o in taken if q == p) + 1 for p in {p for p, _ in taken}}


@given(st.data())
def test_whatever_restarts_there_are_each_record_is_done_once_if_its_commit_arrived(data: st.DataObject) -> None:
    """With gaps in the offsets, as transactions leave them, and records of which Kafka has lost the beginning."""
    log = sorted(data.draw(st.sets(st.integers(0, 60), min_size=1)))
    committed, done = CommittedPosition(0), list[int]()
    for _ in range(data.draw(st.integers(1, 5))):
        positions = OpenOffsets()
        positions.recall(0, committed)
        upto = data.draw(st.integers(0, len(log)))
        readable = [offset for offset in log[:upto] if offset >= committed.offset]
        open_ = [offset for offset in readable if positions.take(0, offset)]
        assert not set(open_) & set(done)
        for offset in data.draw(st.permutations(open_))[: data.draw(st.integers(0, len(open_)))]:
            positions.done(0, offset)
            done.append(offset)
        committed = positions.moved().get(0, committed)
    last = OpenOffsets()
    last.recall(0, committed)
    rest = [offset for offset in log if offset >= committed.offset and last.take(0, offset)]
    assert sorted(done + rest) == log
