"""How far a sink's topic is dealt with, when messages end in any order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.connectors.egress import Positions


def test_an_offset_moves_only_over_what_is_done() -> None:
    positions = Positions()
    for offset in (5, 6, 8):
        positions.take(0, offset)
    positions.done(0, 6)
    assert positions.advanced() == {}
    positions.done(0, 5)
    assert positions.advanced() == {0: 7}
    assert positions.advanced() == {}
    positions.done(0, 8)
    assert positions.advanced() == {0: 9}


def test_a_partition_that_was_given_away_is_not_committed() -> None:
    positions = Positions()
    positions.take(0, 1)
    positions.take(1, 1)
    positions.forget([0])
    positions.done(0, 1)
    positions.done(1, 1)
    assert positions.advanced() == {1: 2}


@given(st.data())
def test_nothing_is_skipped_and_at_the_end_all_is_committed(data: st.DataObject) -> None:
    taken = data.draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30)), unique=True))
    positions = Positions()
    for partition, offset in sorted(taken):
        positions.take(partition, offset)
    committed: dict[int, int] = {}
    done: set[tuple[int, int]] = set()
    for place in data.draw(st.permutations(taken)):
        positions.done(*place)
        done.add(place)
        committed |= positions.advanced()
        assert all(place in done for place in taken if place[1] < committed.get(place[0], 0))
    assert committed == {p: max(o for q, o in taken if q == p) + 1 for p in {p for p, _ in taken}}
