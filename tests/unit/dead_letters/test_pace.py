"""So many messages a second, evenly."""

from __future__ import annotations

from threading import Event

import pytest

from engine.dead_letters.pace import MOST_BYTES, BatchShare, Pace, batches
from tests.unit.clock import Clock


@pytest.mark.parametrize(("rate", "batch"), [(None, 200), (0.5, 1), (5, 1), (50, 5), (1000, 100), (100_000, 200)])
def test_batches_are_small_enough_to_be_even(rate: float | None, batch: int) -> None:
    assert Pace(rate).batch == batch


@pytest.mark.parametrize("rate", [0.5, 5, 50, 1000, 100_000])
def test_messages_take_as_long_as_their_rate_says(rate: float) -> None:
    clock = Clock()
    pace = Pace(rate, clock)
    sent = 0
    while clock.now < 110:
        clock.now += pace.wait_seconds
        pace.sent(pace.batch)
        sent += pace.batch
    assert sent == pytest.approx(10 * rate, abs=2 * pace.batch + 1)


def test_what_was_late_is_not_made_up_for() -> None:
    clock = Clock()
    pace = Pace(10, clock)
    pace.sent(1)
    clock.now += 60
    assert pace.wait_seconds == 0
    pace.sent(1)
    assert pace.wait_seconds == pytest.approx(0.1)


def test_without_a_rate_nothing_waits() -> None:
    pace = Pace(None, Clock())
    pace.sent(1_000_000)
    assert pace.wait_seconds == 0


COUNTS, FREE, STAYS = BatchShare(1), BatchShare(1, counts=False), None


@pytest.mark.parametrize(
    ("shares", "most", "sizes"),
    [
        pytest.param([COUNTS] * 450, None, [200, 200, 50], id="messages"),
        pytest.param([BatchShare(MOST_BYTES)] * 2 + [COUNTS], None, [1, 1, 1], id="bytes"),
        pytest.param([STAYS] * 1500, None, [1000, 500], id="outcomes"),
        pytest.param([COUNTS, STAYS, FREE, COUNTS, COUNTS], 2, [4], id="most"),
        pytest.param([], None, [], id="none"),
    ],
)
def test_batches_are_as_large_as_a_transaction_may_be(
    shares: list[BatchShare | None], most: int | None, sizes: list[int]
) -> None:
    assert [len(each) for each in batches(shares, lambda share: share, None, most, Event())] == sizes


def test_after_a_stop_no_batch_goes() -> None:
    stop = Event()
    going = batches([COUNTS] * 500, lambda share: share, None, None, stop)
    assert len(next(going)) == 200
    stop.set()
    assert list(going) == []
