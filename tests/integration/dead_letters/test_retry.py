"""Retries of dead letters by the bridge itself: when they are due, each attempt once, and no more than configured."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from engine.dead_letters.audit import Action, last
from engine.dead_letters.replay import Options, ReplayOutcome
from engine.dead_letters.retry import Retries
from engine.embedded import EmbeddedKafka
from engine.message import Record
from routes.config import load, loads
from routes.errors import ConfigurationError
from routes.sections import HELD
from tests.conftest import TopicFactory
from tests.integration.buried import Bridge, added, dead_letters_of, message, replayed
from tests.waiting import until


@pytest.fixture
def bridge(tmp_path: Path, kafka: EmbeddedKafka, topic: TopicFactory) -> Bridge:
    return dead_letters_of(kafka, topic, tmp_path, "routing.retry=3s, 4s\nrouting.max-replays=1\n")


def retries(bridge: Bridge) -> Retries:
    return Retries(lambda: bridge.config, lambda: True)


def failed_now(record: Record, number: int) -> Record:
    """A dead letter of this moment."""
    now = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()).encode() + b".000Z"
    own = [(name, now if name == "jmsbridge.time" else value) for name, value in added("journal", number)]
    return replace(record, headers=(*record.headers, *own))


def test_a_letter_is_retried_after_the_pause_of_its_attempt_and_then_waits_for_a_person(
    bridge: Bridge, capsys: pytest.CaptureFixture[str]
) -> None:
    began = time.time()
    bridge.bury_as_it_is(failed_now(message(0), 0), failed_now(replayed(message(1)), 1), replayed(message(2), 2))
    assert bridge.replay(0) == [(0, ReplayOutcome.NOT_REPLAYABLE)]
    assert bridge.command("dlt", "replay", "0:1", "--force") == 0
    out = capsys.readouterr().out
    assert "not replayable: the bridge replays it by itself after 20" in out
    assert "(retry 2 of 2, routing.retry)" in out
    with retries(bridge):
        until(lambda: len(bridge.journal()) >= 1)
        assert time.time() - began > 2.0
        until(lambda: len(bridge.journal()) == 2)
        time.sleep(1.0)
    sent = sorted(bridge.journal(), key=lambda record: record.value or b"")
    assert sent == [replayed(message(0)), replace(message(1), headers=replayed(message(1), 2).headers)]
    first, second = last(bridge.store, 10)
    assert (first.position.offset, second.position.offset) == (0, 1)
    assert {(each.action, each.actor.user, each.actor.command) for each in (first, second)} == {
        (Action.REPLAYED, "jms-bridge", "routing.retry")
    }
    assert bridge.replay(2) == [(2, ReplayOutcome.REPLAYED)]


def test_further_processes_retry_nothing_again_and_two_at_once_each_letter_once(bridge: Bridge) -> None:
    bridge.bury(*map(message, range(300)))
    bridge.bury(*map(message, range(300, 600)), partition=1)
    assert bridge.command("dlt", "discard", "0:7") == 0
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(retries(bridge))
        until(lambda: len(bridge.journal()) >= 599)
    with retries(bridge):
        bridge.bury(message(600))
        until(lambda: len(bridge.journal()) >= 600)
    bodies = [record.value for record in bridge.journal()]
    assert sorted(bodies) == sorted(f"body {number}".encode() for number in range(601) if number != 7)


def test_a_discarded_letter_is_not_retried_and_can_be_replayed_by_force(bridge: Bridge) -> None:
    bridge.bury(message(0))
    assert bridge.command("dlt", "discard", "0:0") == 0
    assert bridge.replay(0) == [(0, ReplayOutcome.ALREADY_DISCARDED)]
    assert bridge.replay(0, options=Options(force=True)) == [(0, ReplayOutcome.REPLAYED)]


def test_a_letter_that_nobody_could_replay_is_left_to_a_person(bridge: Bridge) -> None:
    cut = replace(message(0), headers=(*message(0).headers, ("jmsbridge.truncated", b"3000000")))
    bridge.bury(cut, message(1, JMSExpiration="1000"), message(2))
    with retries(bridge):
        until(lambda: len(bridge.journal()) == 1)
    assert bridge.journal() == [replayed(message(2))]
    assert len(last(bridge.store, 10)) == 1


def test_nothing_is_retried_while_the_bridge_stands_by_or_without_the_setting(bridge: Bridge, tmp_path: Path) -> None:
    bridge.bury(message(0))
    file = tmp_path / "other.properties"
    file.write_text(bridge.config.path.read_text().replace("routing.retry", "#"))
    config, leads = load(file), False
    with Retries(lambda: bridge.config, lambda: leads), Retries(lambda: config, lambda: True):
        time.sleep(2.0)
        assert bridge.journal() == []
        leads = True
        until(lambda: len(bridge.journal()) == 1)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("5", "'5' is not a time from 1s to 7d with its unit: ms, s, m, h or d"),
        ("5s,, 1m", "'' is not a time from 1s to 7d"),
        ("5s, 10d", "'10d' is not a time from 1s to 7d"),
        (", ".join(["1s"] * 21), "has 21 times; expected up to 20 times from 1s to 7d"),
    ],
)
def test_wrong_pauses_are_told(bridge: Bridge, text: str, told: str) -> None:
    path = bridge.config.path
    path.write_text(path.read_text().replace("routing.retry=3s, 4s", f"routing.retry={text}"))
    with pytest.raises(ConfigurationError, match=r"routing\.retry") as raised:
        load(path)
    assert told in str(raised.value)


def held(number: int, route: str = "orders") -> Record:
    """A message that a paused route holds, in its second replay already."""
    record = replayed(message(number), 2)
    own = [
        (name, route.encode() if name == "jmsbridge.route" else value) for name, value in added("journal", number, HELD)
    ]
    return replace(record, headers=(*record.headers, *own))


def test_held_messages_are_replayed_in_their_order_when_their_route_is_not_paused(
    kafka: EmbeddedKafka, topic: TopicFactory, tmp_path: Path
) -> None:
    bridge = dead_letters_of(kafka, topic, tmp_path, "routing.max-replays=1\n")
    bridge.bury_as_it_is(*map(held, range(500)), held(900, "others"), message(901))
    assert bridge.replay(0) == [(0, ReplayOutcome.NOT_REPLAYABLE)]
    lines = "routes.orders.in.include=TRUE\nroutes.orders.out.topic=t\nroutes.orders.paused={}\n"
    text = bridge.config.path.read_text()
    paused, opened = (loads(text + lines.format(value), base=tmp_path) for value in ("true", "false"))
    config = paused
    with Retries(lambda: config, lambda: True, lambda: 1):
        # Only the route that is not there any more.
        until(lambda: len(bridge.journal()) == 1)
        time.sleep(1.5)
        assert [record.value for record in bridge.journal()] == [b"body 900"]
        config = opened
        until(lambda: len(bridge.journal()) == 501)
    with Retries(lambda: config, lambda: True, lambda: 1):
        time.sleep(1.5)
    assert sorted(int((record.value or b"")[5:]) for record in bridge.journal()) == [*range(500), 900]
    assert {record.header("jmsbridge.replays") for record in bridge.journal()} == {"2"}


def test_without_held_messages_and_retries_no_letter_is_touched(
    kafka: EmbeddedKafka, topic: TopicFactory, tmp_path: Path
) -> None:
    bridge = dead_letters_of(kafka, topic, tmp_path)
    bridge.bury_as_it_is(held(0))
    with Retries(lambda: bridge.config, lambda: True, lambda: 0):
        time.sleep(2.0)
    assert bridge.journal() == []
