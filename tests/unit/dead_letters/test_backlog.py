"""How many dead letters are open: counted right whatever comes in which order."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from engine.dead_letters.backlog import OTHER, Backlog
from engine.dead_letters.state import LetterState
from engine.telemetry.status import DeadLetterCounts

REASONS = ("key-not-found", "unmatched")


def backlog(*partitions: int) -> Backlog:
    made = Backlog(REASONS)
    for partition in partitions or (0,):
        made.begin(partition, 0)
    return made


def test_open_dead_letters_are_counted_by_reason_and_all_reasons_are_there_from_the_start() -> None:
    letters = backlog()
    assert letters.open == {"key-not-found": 0, "unmatched": 0, OTHER: 0}
    letters.add(0, 0, "unmatched", 5_000)
    letters.add(0, 1, "unmatched", 6_000)
    letters.add(0, 2, "somebody else's", 7_000)
    assert letters.open == {"key-not-found": 0, "unmatched": 2, OTHER: 1}


def test_the_oldest_is_the_first_open_one_of_all_partitions() -> None:
    letters = backlog(0, 1)
    assert letters.oldest is None
    letters.add(0, 0, "unmatched", 5_000)
    letters.add(0, 1, "unmatched", 9_000)
    letters.add(1, 0, "unmatched", 6_999)
    assert letters.oldest == 5
    letters.close(0, 0)
    assert letters.oldest == 6
    letters.close(1, 0)
    assert letters.oldest == 9
    letters.close(0, 1)
    assert letters.oldest is None


def test_a_dead_letter_is_closed_once_also_before_it_is_there() -> None:
    letters = backlog()
    letters.close(0, 1)
    letters.add(0, 0, "unmatched", 0)
    letters.add(0, 1, "unmatched", 0)
    assert letters.open["unmatched"] == 1
    letters.close(0, 0)
    letters.close(0, 0)
    letters.add(0, 0, "unmatched", 0)
    assert letters.open["unmatched"] == 0


def test_what_retention_removes_counts_no_more() -> None:
    letters = backlog()
    for offset in range(10):
        letters.add(0, offset, "unmatched", offset * 1_000)
    letters.forget_before(0, 4)
    letters.close(0, 3)
    assert (letters.open["unmatched"], letters.oldest) == (6, 4)
    letters.forget_before(0, 20)
    letters.add(0, 25, "unmatched", 25_000)
    assert (letters.open["unmatched"], letters.oldest) == (1, 25)


def test_gaps_of_any_size_cost_no_memory() -> None:
    letters = backlog()
    letters.add(0, 0, "unmatched", 0)
    letters.add(0, 2**60, "key-not-found", 1_000)
    assert letters.open == {"key-not-found": 1, "unmatched": 0, OTHER: 0}


def test_of_too_many_only_the_newest_count() -> None:
    letters = Backlog(REASONS)
    letters.begin(0, 0, most=3)
    for offset in range(10):
        letters.add(0, offset, "unmatched", offset * 1_000)
    assert (letters.open["unmatched"], letters.oldest) == (3, 7)


def test_times_beyond_all_bounds_are_taken_as_the_nearest() -> None:
    letters = backlog()
    letters.add(0, 0, "unmatched", -(10**18))
    assert letters.oldest == 0
    letters.close(0, 0)
    letters.add(0, 1, "unmatched", 10**18)
    assert letters.oldest == 2**32 - 1


def test_a_partition_that_nobody_named_is_passed_over() -> None:
    letters = backlog()
    letters.close(7, 3)
    assert sum(letters.open.values()) == 0


@given(
    st.lists(st.tuples(st.sampled_from(["close", "forget"]), st.integers(0, 40)), max_size=30),
    st.lists(st.integers(1, 5), max_size=20),
    st.randoms(use_true_random=False),
)
def test_counts_are_those_of_a_plain_list(events: list[tuple[str, int]], steps: list[int], random: object) -> None:
    offsets = [sum(steps[: n + 1]) for n in range(len(steps))]
    told: list[tuple[str, int]] = [("add", offset) for offset in offsets]
    for event in events:
        told.insert(random.randint(0, len(told)), event)  # type: ignore[attr-defined]
    letters, plain, closed, low = backlog(), dict[int, str](), set[int](), 0
    for what, offset in told:
        if what == "add":
            letters.add(0, offset, REASONS[offset % 2], offset * 1_000)
            if offset >= low and offset not in closed:
                plain[offset] = REASONS[offset % 2]
        elif what == "close":
            letters.close(0, offset)
            closed.add(offset)
            plain.pop(offset, None)
        else:
            letters.forget_before(0, offset)
            low = max(low, offset)
            plain = {at: reason for at, reason in plain.items() if at >= low}
        assert +Counter(letters.open) == Counter(plain.values())
        assert letters.oldest == min(plain, default=None)


def test_a_census_adds_up_and_ages() -> None:
    census = DeadLetterCounts("dead", reachable=True, open={"a": 2, "b": 1}, oldest=100.0, quarantined=4)
    assert (census.depth, census.oldest_age(160.5), census.oldest_age(90.0)) == (3, 60.5, 0.0)
    assert (DeadLetterCounts("dead").depth, DeadLetterCounts("dead").oldest_age(5.0)) == (None, 0.0)


def test_it_says_of_each_place_in_which_state_its_letter_is() -> None:
    backlog = Backlog(("unmatched",))
    backlog.begin(0, 5)
    backlog.close(0, 9, LetterState.QUARANTINED)
    for offset in (5, 7, 8, 9):
        backlog.add(0, offset, "unmatched", 0)
    backlog.close(0, 7, LetterState.DISCARDED)
    backlog.close(0, 8, LetterState.DISCARDED)
    backlog.close(0, 8, LetterState.REPLAYED)
    backlog.close(0, 8, LetterState.QUARANTINED, is_sure=False)
    states = [None, LetterState.OPEN, None, LetterState.DISCARDED, LetterState.REPLAYED, LetterState.QUARANTINED, None]
    assert [backlog.state(0, offset) for offset in range(4, 11)] == states
    assert backlog.state(1, 5) is None
    assert backlog.open["unmatched"] == 1


def test_a_letter_with_a_seal_is_closed_only_by_what_is_sure_in_whatever_order() -> None:
    letters = backlog()
    letters.close(0, 1, is_sure=False)
    letters.close(0, 2, is_sure=False)
    letters.close(0, 2, is_sure=True)
    letters.close(0, 2, is_sure=False)
    for offset in range(4):
        letters.add(0, offset, "unmatched", 5_000, has_seal=offset < 3)
    letters.close(0, 0, is_sure=False)
    letters.close(0, 3, is_sure=False)
    is_open = [letters.state(0, offset) is LetterState.OPEN for offset in range(4)]
    assert is_open == [True, True, False, False]
    assert letters.open["unmatched"] == 2
    letters.close(0, 0)
    assert letters.open["unmatched"] == 1
    letters.forget_before(0, 2)
    assert letters.open["unmatched"] == 0
