"""How long a source waits before it connects again."""

from __future__ import annotations

from engine.delivery.back_off import BackOff
from tests.unit.clock import Clock


def test_waits_double_with_jitter_up_to_half_a_minute() -> None:
    back_off = BackOff()

    waits = [back_off.next() for _ in range(12)]

    for wait, whole in zip(waits, [0.5, 1, 2, 4, 8, 16, *[30] * 6], strict=True):
        assert whole / 2 <= wait <= whole


def test_a_refused_login_is_not_tried_again_at_once() -> None:
    assert BackOff().next(30) == 30


def test_the_wait_is_short_again_after_messages_have_flown() -> None:
    back_off = BackOff()
    for _ in range(8):
        back_off.next()

    back_off.connected()
    back_off.reset()

    assert back_off.next() <= 0.5


def test_waits_grow_while_connections_end_right_behind_an_acknowledgement() -> None:
    clock = Clock()
    back_off = BackOff(clock)
    waits = []
    for _ in range(8):
        back_off.connected()
        clock.now += 0.1
        back_off.acknowledged()
        clock.now += 0.2
        waits.append(back_off.next())

    for wait, whole in zip(waits, [0.5, 1, 2, 4, 8, 16, 30, 30], strict=True):
        assert whole / 2 <= wait <= whole


def test_the_wait_is_short_again_after_a_connection_that_outlived_its_acknowledgements() -> None:
    clock = Clock()
    back_off = BackOff(clock)
    for _ in range(8):
        back_off.next()
    back_off.connected()
    for _ in range(100):
        back_off.acknowledged()
        clock.now += 0.1

    assert back_off.next() <= 0.5


def test_a_connection_that_is_dropped_at_once_does_not_make_the_wait_short() -> None:
    back_off = BackOff()
    for _ in range(8):
        back_off.next()
        back_off.connected()

    assert back_off.next() >= 15


def test_the_wait_is_short_again_after_a_long_connection_even_without_messages() -> None:
    clock = Clock()
    back_off = BackOff(clock)
    for _ in range(8):
        back_off.next()
    back_off.connected()

    clock.now += 60

    assert back_off.next() <= 0.5
