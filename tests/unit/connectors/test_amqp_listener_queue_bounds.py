"""Bounds of what a listening sink holds and of the time that selectors take, on a simulated clock."""

from __future__ import annotations

import time
from typing import Any

import pytest

from engine.connectors.amqp.codec.values import Described, ULong
from engine.connectors.amqp.frames import EMPTY
from engine.connectors.amqp.performatives import Code, condition_of
from engine.connectors.amqp_listener import receivers
from engine.connectors.amqp_listener.sink import AmqpListenerSink
from routes.predicate import evaluate, parse
from tests.unit.connectors.test_amqp_listener_delivery_queue import (
    ACCEPTED,
    RELEASED,
    Client,
    Clock,
    clock,
    give,
    known,
    sink,
)

__all__ = ["clock", "sink"]


@pytest.fixture
def evaluated(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Bodies of the messages that a selector was applied to, which takes a millisecond each."""
    found = []

    def counted(selector: Any, lookup: Any) -> bool | None:
        clock.now += 0.001
        found.append(lookup(SEARCHED))
        return evaluate(selector, lookup)

    monkeypatch.setattr(receivers, "evaluate", counted)
    return found


SEARCHED = parse("n = 1").root.left  # type: ignore[attr-defined]


def served(sink: AmqpListenerSink) -> int:
    """How many turns it takes until there is nothing more to do."""
    turns = 1
    sink._queue.serve()
    while sink._queue.is_unfinished:
        sink._queue.serve()
        turns += 1
    return turns


def test_a_selector_is_applied_to_each_message_once_and_for_a_bounded_time(
    sink: AmqpListenerSink, clock: Clock, evaluated: list[str]
) -> None:
    picky, other = Client(sink), Client(sink)
    picky.attach(selector="n = 1000")
    give(sink, *range(1, 101))
    assert len(evaluated) <= 3
    begun = clock.now
    sink._queue.serve()
    assert clock.now - begun <= 0.003
    assert served(sink) > 40
    assert len(evaluated) == 100
    clock.now += 1000
    served(sink)
    assert len(evaluated) == 100
    # What others wait for is not held up by it.
    other.attach(credit=200)
    assert len(evaluated) == 100
    assert sink.given == 100


def test_what_comes_back_is_looked_at_once_more(sink: AmqpListenerSink, evaluated: list[str]) -> None:
    picky, other = Client(sink), Client(sink)
    picky.attach(selector="n > 2")
    other.attach(credit=1)
    give(sink, 1)
    other.answer(0, RELEASED)
    other.flow(0, count=1)
    give(sink, 2, 3)
    served(sink)
    assert len(picky.got()) == 1
    count = len(evaluated)
    other.flow(1, count=1)
    other.answer(1, RELEASED)
    other.flow(0, count=2)
    served(sink)
    assert len(evaluated) == count + 1


def test_a_receiver_whose_selector_takes_long_rests(
    sink: AmqpListenerSink, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 0

    def slow(*_: object) -> bool:
        nonlocal count
        count += 1
        clock.now += 1.0
        return False

    monkeypatch.setattr(receivers, "evaluate", slow)
    client = Client(sink)
    client.attach(selector="n = 1000")
    give(sink, *range(1, 50))
    for _ in range(100):
        sink._queue.serve()
        clock.now += 1.0
    # One second of its time in eleven.
    assert 8 <= count <= 20


def test_a_selector_with_many_patterns_is_refused(sink: AmqpListenerSink) -> None:
    client = Client(sink)
    assert client.attach(selector=" or ".join(["n like 'a%'"] * 32), handle=0)[0][0] == Code.ATTACH
    refused = client.attach(selector=" or ".join(["not n like 'a%'"] * 33), handle=1)
    condition = condition_of(refused[1][1][2])
    assert condition is not None
    assert condition.name == "amqp:invalid-field"
    assert "33 LIKE conditions" in condition.description


def test_a_selector_that_asks_for_the_body_is_refused(sink: AmqpListenerSink) -> None:
    refused = Client(sink).attach(selector="a = 1 OR NOT msg.body.b = 'q'", handle=0)
    condition = condition_of(refused[1][1][2])
    assert condition is not None
    assert condition.name == "amqp:invalid-field"
    assert "the selector asks for the body" in condition.description


def test_a_transaction_that_takes_too_long_gives_its_messages_back(sink: AmqpListenerSink) -> None:
    hung, other = Client(sink), Client(sink)
    hung.attach(credit=2)
    give(sink, 1, 2)
    transaction = hung.declare()
    hung.answer(0, Described(ULong(0x34), [transaction, ACCEPTED]))
    hung.peer.feed(EMPTY, 119.0)
    hung.peer.tick(119.0)
    other.attach()
    assert other.got() == []
    hung.peer.feed(EMPTY, 121.0)
    hung.peer.tick(121.0)
    sink._queue.serve()
    assert len(other.got()) == 1
    # What it answers in it later comes back as well.
    hung.answer(1, Described(ULong(0x34), [transaction, ACCEPTED]))
    sink._queue.serve()
    assert len(other.got()) == 1
    assert sink._queue._undecided == 0


def fill(sink: AmqpListenerSink, count: int, *addresses: str) -> None:
    for number in range(count):
        give(sink, number + 1, address=addresses[number % len(addresses)])


def refused(sink: AmqpListenerSink) -> list[int]:
    return [each.number for each in known(sink) if each.refusal and "no client has taken" in each.refusal]


def test_a_queue_that_nobody_takes_from_makes_room_for_clients_of_others(sink: AmqpListenerSink, clock: Clock) -> None:
    fill(sink, 1200, "queue/a")
    clock.now = 61.0
    sink.relieve()
    # Nobody waits for anything else.
    assert refused(sink) == []
    Client(sink).attach("b")
    clock.now = 59.0
    sink.relieve()
    assert refused(sink) == []
    clock.now = 61.0
    sink.relieve()
    assert refused(sink) == list(range(1001, 1201))
    sink.relieve()
    assert refused(sink) == []
    # Nor do others wait again for what comes next, whatever its address.
    for number in range(2001, 2051):
        give(sink, number, address="queue/a")
        give(sink, number + 1000, address=f"queue/{number}")
    clock.now = 62.0
    sink.relieve()
    assert len(refused(sink)) == 100


def test_many_stalled_queues_make_room_together_the_longest_first(sink: AmqpListenerSink, clock: Clock) -> None:
    fill(sink, 600, "queue/a")
    for number in range(1001, 1701):
        give(sink, number, address=f"queue/{number}")
    Client(sink).attach("b")
    clock.now = 61.0
    sink.relieve()
    assert refused(sink) == list(range(301, 601))


def test_a_queue_whose_clients_take_messages_keeps_all_of_them(sink: AmqpListenerSink, clock: Clock) -> None:
    worker = Client(sink)
    worker.attach("a", credit=1)
    fill(sink, 1200, "queue/a")
    Client(sink).attach("b")
    clock.now = 50.0
    worker.answer(0, ACCEPTED)
    clock.now = 61.0
    known(sink)
    sink.relieve()
    assert refused(sink) == []


def test_a_receiver_that_answers_nothing_is_detached_where_others_wait(sink: AmqpListenerSink, clock: Clock) -> None:
    hung = Client(sink)
    hung.attach("a", credit=1200)
    fill(sink, 1200, "queue/a")
    Client(sink).attach("b")
    assert len(hung.got()) == 1000
    clock.now = 61.0
    sink.relieve()
    ((code, fields),) = hung.heard()
    condition = condition_of(fields[2])
    assert condition is not None
    assert (code, condition.name) == (Code.DETACH, "amqp:resource-limit-exceeded")
    assert len(refused(sink)) == 200


def test_what_a_client_says_of_all_deliveries_there_can_be_costs_what_it_has(sink: AmqpListenerSink) -> None:
    client = Client(sink)
    client.attach(credit=3)
    give(sink, 1, 2, 3)
    begun = time.process_time()
    for _ in range(100):
        client.answer(4, ACCEPTED, 2**32 - 1)
    assert time.process_time() - begun < 5
    client.answer(0, ACCEPTED, 2**32 - 1)
    assert [each.number for each in known(sink)] == [1, 2, 3]


def test_idle_receivers_at_many_addresses_leave_nothing_to_do(sink: AmqpListenerSink, clock: Clock) -> None:
    client = Client(sink)
    for handle in range(50):
        client.attach(str(handle), handle=handle)
    give(sink, 1, address="queue/49")
    client.got()
    # Each address takes so long that a turn is over behind a few of them.
    sink._queue._clock = lambda: setattr(clock, "now", clock.now + 0.002) or clock.now  # type: ignore[func-returns-value]
    assert served(sink) > 1
    assert not sink._queue.is_unfinished
