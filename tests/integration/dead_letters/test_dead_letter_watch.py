"""Open dead letters are counted from their topics, soon, and right after any restart."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from engine.dead_letters.replay import Options, discard, replay
from engine.dead_letters.store import DeadLetterStore
from engine.dead_letters.watch import DeadLetterWatch
from engine.embedded import EmbeddedKafka
from engine.kafka.reader import Position
from engine.message import Record
from engine.telemetry.status import DeadLetterCounts
from routes.config import load
from tests.conftest import TopicFactory
from tests.integration.buried import Bridge, added, dead_letters_of, message, replayed
from tests.waiting import patience

SOON = 20
"""Seconds; on a machine that does nothing else, five are enough."""


@pytest.fixture
def bridge(tmp_path: Path, kafka: EmbeddedKafka, topic: TopicFactory) -> Bridge:
    return dead_letters_of(kafka, topic, tmp_path)


@contextmanager
def watching(bridge: Bridge, is_wanted: Callable[[], bool] = lambda: True) -> Iterator[DeadLetterWatch]:
    with DeadLetterWatch(lambda: bridge.store, is_wanted) as watch:
        yield watch


def wait(
    watch: DeadLetterWatch, condition: Callable[[DeadLetterCounts | None], bool], seconds: float = SOON
) -> DeadLetterCounts | None:
    deadline = time.monotonic() + patience(seconds)
    while not condition(census := watch.census()):
        assert time.monotonic() < deadline, census
        time.sleep(0.1)
    return census


def figures(watch: DeadLetterWatch, depth: int, quarantined: int) -> DeadLetterCounts:
    census = wait(watch, lambda c: c is not None and (c.depth, c.quarantined) == (depth, quarantined))
    assert census is not None
    return census


def by_reason(census: DeadLetterCounts) -> dict[str, int]:
    return {reason: count for reason, count in (census.open or {}).items() if count}


def test_what_comes_is_settled_or_removed_is_counted_soon_and_the_same_after_a_restart(bridge: Bridge) -> None:
    with watching(bridge) as watch:
        assert by_reason(figures(watch, 0, 0)) == {}
        bridge.bury(*map(message, range(4)), replayed(message(4), 3))
        bridge.bury(message(5), partition=1)
        record = message(6)
        own = added(bridge.config.journal.topic, 6, "somebody-else's")
        bridge.bury_as_it_is(Record(record.key, record.value, (*record.headers, *own)), partition=1)
        census = figures(watch, 7, 0)
        assert census.reachable
        assert by_reason(census) == {"key-not-found": 6, "other": 1}
        assert census.oldest == 1_795_240_800

        list(replay(bridge.store, [Position(bridge.dead, 0, 0), Position(bridge.dead, 0, 4)]))
        assert by_reason(figures(watch, 5, 1)) == {"key-not-found": 4, "other": 1}
        list(discard(bridge.store, [Position(bridge.dead, 1, 1)]))
        assert by_reason(figures(watch, 4, 1)) == {"key-not-found": 4}
        list(replay(bridge.store, None, options=Options(quarantine=True, force=True)))
        figures(watch, 4, 0)
    with watching(bridge) as watch:
        assert by_reason(figures(watch, 4, 0)) == {"key-not-found": 4}
        admin = AdminClient({"bootstrap.servers": bridge.kafka.bootstrap})
        for future in admin.delete_records([TopicPartition(bridge.dead, 0, 3)]).values():
            future.result(30)
        figures(watch, 2, 0)
        bridge.bury(message(7))
        list(replay(bridge.store, None))
        figures(watch, 0, 0)


def test_figures_are_a_few_seconds_old_at_most(bridge: Bridge) -> None:
    with watching(bridge) as watch:
        figures(watch, 0, 0)
        delays = []
        for number in range(1, 5):
            bridge.bury(message(number))
            started = time.monotonic()
            figures(watch, number, 0)
            delays.append(time.monotonic() - started)
        # The median: others use the machine, too.
        assert sorted(delays)[2] < 5


def test_many_dead_letters_are_counted_in_the_end(bridge: Bridge) -> None:
    bridge.bury(*(Record(b"k", b"x" * 100, ()) for _ in range(20_000)))
    list(discard(bridge.store, None, options=Options(most=12_000)))
    with watching(bridge) as watch:
        census = wait(watch, lambda c: c is not None and c.depth is not None, 60)
        assert census is not None
        assert by_reason(census) == {"key-not-found": 8_000}


def test_a_topic_that_is_missing_is_out_of_reach_until_it_is_there(bridge: Bridge) -> None:
    admin = AdminClient({"bootstrap.servers": bridge.kafka.bootstrap})
    bridge.bury(message(0))
    list(replay(bridge.store, None))
    admin.delete_topics([bridge.dead])[bridge.dead].result(30)
    with watching(bridge) as watch:
        census = wait(watch, lambda c: c is not None and not c.reachable)
        assert census is not None
        assert census.depth is None
        assert f"topic '{bridge.dead}' (dead letters): does not exist; create it" in census.trouble
        admin.create_topics([NewTopic(bridge.dead, 1, 1)])[bridge.dead].result(30)
        bridge.bury(message(1))
        assert figures(watch, 1, 0).trouble == ""
        # Under a watch that goes on: those of before are no more, and what settled them does not settle these.
        admin.delete_topics([bridge.dead])[bridge.dead].result(30)
        wait(watch, lambda c: c is not None and not c.reachable)
        admin.create_topics([NewTopic(bridge.dead, 1, 1)])[bridge.dead].result(30)
        bridge.bury(message(2), message(3))
        figures(watch, 2, 0)


def test_nothing_is_known_while_the_bridge_does_not_lead(bridge: Bridge) -> None:
    bridge.bury(message(0))
    leads = [False]
    with watching(bridge, lambda: leads[0]) as watch:
        time.sleep(2)
        assert watch.census() is None
        leads[0] = True
        figures(watch, 1, 0)
        leads[0] = False
        assert wait(watch, lambda c: c is None) is None


def test_a_kafka_that_does_not_answer_is_told_in_a_line(bridge: Bridge) -> None:
    text = bridge.config.path.read_text().replace(bridge.kafka.bootstrap, "127.0.0.1:1")
    bridge.config.path.write_text(text)
    config = load(bridge.config.path)
    with DeadLetterWatch(lambda: DeadLetterStore.of(config), lambda: True) as watch:
        census = wait(watch, lambda c: c is not None, 30)
    assert census is not None
    assert not census.reachable
    assert census.trouble.startswith("Kafka at 127.0.0.1:1 does not answer (")
    assert "\n" not in census.trouble


def test_a_configuration_that_comes_into_force_says_which_dead_letters_are_counted(bridge: Bridge) -> None:
    bridge.bury(message(0))
    without = replace(bridge.config, routing=replace(bridge.config.routing, dead_letter_topic=None))
    in_force = [bridge.config]
    with DeadLetterWatch(lambda: DeadLetterStore.of(in_force[0]), lambda: True) as watch:
        figures(watch, 1, 0)
        in_force[0] = without
        found = wait(watch, lambda c: c is not None and c.topic == without.letter_topic)
        assert found is not None
        assert not found.reachable
        in_force[0] = bridge.config
        figures(watch, 1, 0)
