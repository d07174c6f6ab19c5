"""How far a consumer was, as it is noted and taken up again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.connectors.nats.message import Stored
from engine.connectors.nats.stream_reader import AckPosition, furthest

CREATED = "2026-11-22T08:07:39.1234Z"

places = st.builds(AckPosition, st.just(CREATED), st.integers(0, 2**63), st.integers(0, 2**53))


def message(sequence: int, time_ms: int) -> Stored:
    return Stored("IN", str(sequence), 1, time_ms)


@given(st.lists(places, min_size=1))
def test_the_furthest_of_all_notes_counts(noted: list[AckPosition]) -> None:
    found = furthest(map(str, noted), CREATED)
    assert found in noted
    assert found.floor == max(place.floor for place in noted)


@pytest.mark.parametrize("note", ["", "x", f"{CREATED} 1", f"{CREATED} 1 x", f"{CREATED} 1 2 3", "another 7 8"])
def test_what_is_no_note_of_this_consumer_is_passed_over(note: str) -> None:
    assert furthest([note], CREATED) is None
    assert furthest([note, f"{CREATED} 5 6"], CREATED) == AckPosition(CREATED, 5, 6)


def test_what_was_acknowledged_by_then_is_covered_and_nothing_else() -> None:
    place = AckPosition(CREATED, 100, 5000)
    assert place.covers(message(1, 1000))
    assert place.covers(message(100, 5000))
    assert not place.covers(message(101, 5000))


def test_a_stream_that_was_restored_gives_its_sequences_again_to_messages_of_a_later_time() -> None:
    assert not AckPosition(CREATED, 100, 5000).covers(message(90, 5001))
