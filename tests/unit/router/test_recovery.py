"""From when on records may have been written after the last commit."""

from engine.router.generation import Committed
from engine.router.recovery import in_both, written_since


def test_a_commit_is_a_bound_with_a_margin_for_clocks_that_differ() -> None:
    assert written_since(Committed({0: 1}, 1_000_000), 1_500_000) == 940_000


def test_without_a_commit_or_with_a_clock_that_was_set_back_there_is_none() -> None:
    assert written_since(None, 1_500_000) is None
    assert written_since(Committed({0: 1}, 1_000_000), 999_999) is None


def test_a_topic_or_partition_that_came_or_went_between_two_questions_is_left_out() -> None:
    starts = {"orders": {0: 1, 1: 0}, "new": {0: 0}}
    ends = {"orders": {0: 5}, "deleted": {0: 7}}

    assert in_both(starts, ends) == ({"orders": {0: 1}}, {"orders": {0: 5}})
