"""Expiry times of messages that wait: which are due, and that those of delivered messages take no memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.connectors import expiry
from engine.connectors.base import Outgoing
from engine.connectors.expiry import ExpiryTimes
from engine.message import Message


def outgoing(number: int, expiration_ms: int) -> Outgoing:
    return Outgoing(number, Message(headers={"JMSExpiration": str(expiration_ms)}), "queue/a", str(number))


def test_the_times_of_delivered_messages_take_no_memory() -> None:
    times = ExpiryTimes()

    for number in range(100_000):
        times.add(outgoing(number, 10**15))
        times.discard(number)

    assert len(times._heap) < 2_000
    assert not times._times


@given(st.lists(st.tuples(st.integers(0, 30), st.booleans()), max_size=60), st.integers(0, 30))
def test_those_are_due_that_have_expired_and_wait(messages: list[tuple[int, bool]], now: int) -> None:
    times = ExpiryTimes()
    for number, (expiration, _) in enumerate(messages):
        times.add(outgoing(number, expiration))
    for number, (_, delivered) in enumerate(messages):
        if delivered:
            times.discard(number)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(expiry, "_SPARE", 0)
        patch.setattr(expiry.time, "time", lambda: now / 1000)
        due, again = times.due(), times.due()

    assert due == {n for n, (at, delivered) in enumerate(messages) if 0 < at <= now and not delivered}
    assert again == set()
