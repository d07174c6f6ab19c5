"""Order of reading: each offset once, the newest of a partition first; and tokens, which lead to the same rest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import UsageError
from engine.find.stretches import NOTHING_READ, PIECE, Amounts, Ranges, SearchState

PLACES = st.tuples(st.sampled_from(["journal", "orders", "dead"]), st.integers(0, 40))


@st.composite
def partition_ranges(draw: st.DrawFn) -> Ranges:
    """Two ranges, the second behind the first, as an end in time makes them; either may be empty."""
    start = draw(st.integers(0, 1 << 40))
    sizes = st.one_of(st.integers(0, 3_000), st.integers(0, 3_000_000))
    between = start + draw(sizes)
    return (start, between), (between, between + draw(sizes))


@given(st.dictionaries(PLACES, partition_ranges(), max_size=12))
def test_stretches_cover_each_offset_once_the_newest_of_a_range_first(
    given_ranges: dict[tuple[str, int], Ranges],
) -> None:
    state = SearchState.begin(given_ranges)
    assert state.total == sum(end - start for of in given_ranges.values() for start, end in of)
    covered: dict[tuple[str, int], list[tuple[int, int]]] = {place: [] for place in given_ranges}
    total = 0
    while state.left:
        pieces = state.pieces()
        read = sum(piece.end - piece.start for piece in pieces)
        assert read > 0
        total += read
        for piece in pieces:
            assert piece.start < piece.end
            covered[piece.topic, piece.partition].append((piece.start, piece.end))
        state = state.read(Amounts(read))
    assert state.amounts.read == total == state.total
    for place, ranges in given_ranges.items():
        found = iter(covered[place])
        for start, end in ranges:
            at = end
            while at > start:
                low, high = next(found)
                assert high == at
                at = low
            assert at == start
        assert next(found, None) is None


@given(st.dictionaries(PLACES, partition_ranges(), max_size=6), st.integers(0, 6), st.booleans())
def test_a_token_leads_to_the_same_rest(given_ranges: dict[tuple[str, int], Ranges], steps: int, within: bool) -> None:
    state = SearchState.begin(given_ranges)
    for _ in range(steps):
        state = state.read(Amounts(5, 4, 1)) if state.left else state
    if within:
        state = state.given((1_790_000_000_000, "journal", 3, 17))
    read = SearchState.of_token(state.token("digest"), "digest")
    assert read == state
    assert read.pieces() == state.pieces()


def test_the_first_stretch_is_short_and_later_ones_are_long() -> None:
    state = SearchState.begin({("journal", 0): ((0, 10_000_000),)})
    sizes = []
    while state.left:
        sizes.append(sum(piece.end - piece.start for piece in state.pieces()))
        state = state.read(NOTHING_READ)
    assert sizes[:3] == [1_000, 8_000, 64_000]
    assert max(sizes) == 1 << 20


def test_long_pieces_begin_and_end_at_multiples_of_their_size() -> None:
    state = SearchState.begin({("journal", each): ((5, 3_000_000),) for each in range(80)})
    whole = 0
    while state.left:
        pieces = state.pieces()
        assert sum(piece.end - piece.start for piece in pieces) <= 1 << 22
        whole += sum(piece.start % PIECE == 0 and piece.end - piece.start == PIECE for piece in pieces)
        state = state.read(NOTHING_READ)
    assert whole == 80 * (3_000_000 // PIECE - 1)


def test_a_long_stretch_is_divided_among_threads() -> None:
    state = SearchState.begin({("journal", 0): ((0, 10_000_000),)})
    for _ in range(5):
        state = state.read(NOTHING_READ)
    assert len(state.pieces()) == 8


def test_a_token_of_another_question_is_refused() -> None:
    token = SearchState.begin({("journal", 0): ((0, 10),)}).token("one")
    with pytest.raises(UsageError, match="of another question"):
        SearchState.of_token(token, "other")


@given(st.text(max_size=80))
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="incomplete or none at all"):
        SearchState.of_token(text, "digest")


@given(st.data())
def test_a_part_of_a_token_is_refused(data: st.DataObject) -> None:
    token = SearchState.begin({("journal", each): ((0, 10 * each),) for each in range(9)}).token("digest")
    part = token[: data.draw(st.integers(0, len(token) - 1))]
    with pytest.raises(UsageError, match="incomplete or none at all"):
        SearchState.of_token(part, "digest")
