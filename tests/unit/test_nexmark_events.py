"""Events of Nexmark: the same in every run, in the proportions of the benchmark."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise

import pytest

from bench.nexmark.events import AUCTION, BEGIN, BID, PERSON, TAIL_BEGIN, events
from bench.nexmark.results import QUERIES, Query, in_force

COUNT = 20_000
VALUES = [json.loads(event.value) for event in events(COUNT)]
PERSONS, AUCTIONS, BIDS = ([value[kind] for value in VALUES if kind in value] for kind in ("person", "auction", "bid"))


def test_events_are_the_same_in_every_run() -> None:
    assert list(events(500)) == list(events(500))


def test_of_fifty_events_one_is_a_person_and_three_are_auctions() -> None:
    counts = Counter(value["event_type"] for value in VALUES)
    assert counts == {PERSON: COUNT // 50, AUCTION: COUNT * 3 // 50, BID: COUNT * 46 // 50}


def test_ids_begin_at_a_thousand_and_follow_each_other() -> None:
    assert [person["id"] for person in PERSONS] == list(range(1000, 1000 + len(PERSONS)))
    assert [auction["id"] for auction in AUCTIONS] == list(range(1000, 1000 + len(AUCTIONS)))


@pytest.mark.parametrize(
    ("hot", "share"),
    [
        ([bid["auction"] % 100 == 0 for bid in BIDS], 0.5),
        ([bid["bidder"] % 100 == 1 for bid in BIDS], 0.75),
        ([auction["seller"] % 100 == 0 for auction in AUCTIONS], 0.75),
        ([bid["channel"] in ("Google", "Facebook", "Baidu", "Apple") for bid in BIDS], 0.5),
    ],
)
def test_the_hot_ones_have_their_share(hot: list[bool], share: float) -> None:
    assert sum(hot) / len(hot) == pytest.approx(share, abs=0.03)


def test_times_are_steps_but_for_the_tail() -> None:
    times = [event.time for event in events(COUNT)]
    assert times[0] == BEGIN
    assert {later - earlier for earlier, later in pairwise(times[: COUNT - 1000])} == {0, 1}
    assert times[10_000] == BEGIN + 1_000
    assert times[-1001] < TAIL_BEGIN == times[-1000]


def test_an_event_has_its_time() -> None:
    assert all(json.loads(event.value)["bid"]["dateTime"] == event.time for event in list(events(100))[4:50])


def test_events_of_more_than_a_day_are_an_error() -> None:
    with pytest.raises(ValueError, match=r"10,000,000 events at 100 a second take longer than a day: take fewer"):
        next(events(10_000_000, 100))


def test_the_last_value_of_a_key_is_in_force_unless_it_was_removed() -> None:
    assert in_force("q17", [("a", 1), ("b", 2), ("a", None), ("b", 3)]) == [3]


def test_all_values_are_in_force_where_results_do_not_change() -> None:
    assert in_force("q0", [(None, 1), ("a", 2), ("a", 3)]) == [1, 2, 3]


def test_elements_of_an_array_are_results() -> None:
    assert QUERIES["q5"].rows([{"starttime": BEGIN, "num": 3, "auctions": [7, 9]}]) == {
        (BEGIN, 7, 3): 1,
        (BEGIN, 9, 3): 1,
    }
    assert QUERIES["q19"].rows([{"auction": 1, "bids": [{"price": 9}, {"price": 8}]}]) == {(1, 9, 1): 1, (1, 8, 2): 1}


def test_results_of_the_tail_are_left_out() -> None:
    assert Query(("day",), tail="day").rows([{"day": "2026-01-01"}, {"day": "2026-01-02"}]) == {("2026-01-01",): 1}


def test_counts_are_added_up() -> None:
    assert Query(("bidder", "n"), is_summed=True).rows([{"bidder": 1, "n": 2}, {"bidder": 1, "n": 3}]) == {(1,): 5}
