"""What every source must survive: brokers that are away, killed, slow or silent, and a journal that stands still."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.telemetry.status import State
from tests.integration.connectors.running import numbered, numbers
from tests.processes import paused
from tests.waiting import until

if TYPE_CHECKING:
    from engine.embedded import EmbeddedKafka
    from tests.integration.connectors.conftest import Configure, Proxied, Start
    from tests.integration.connectors.harness import Harness


def test_a_broker_that_is_not_there_yet_is_waited_for(
    harness: Harness,
    configured: Configure,
    start: Start,
    queue: str,
    kafka: EmbeddedKafka,
    proxied: Proxied,
) -> None:
    harness.send(queue, numbered(5))
    with proxied(1) as nobody:
        config = configured(harness.settings(queue, nobody.port))
        source = start(config)
        until(lambda: source.status.current.state is State.DEGRADED)
        assert source.alive
        assert f":{nobody.port}" in source.status.current.detail
        nobody.target_port = harness.port

        source.acknowledges(5)

    assert sorted(numbers(kafka.bootstrap, config.journal.topic)) == list(range(5))


def test_a_broker_that_stays_away_is_asked_for_as_long_as_it_takes(
    harness: Harness, configured: Configure, start: Start, queue: str
) -> None:
    config = configured(harness.settings(queue, 1) | {"router.outage-timeout": "1s"})

    source = start(config)
    until(lambda: source.error or harness.unreachable in source.status.current.detail)
    time.sleep(2)  # what is tested is that nothing happens in this time

    assert source.error is None
    assert source.alive
    assert source.status.current.state is State.DEGRADED


def test_a_connection_that_is_cut_again_and_again_loses_nothing(
    harness: Harness,
    configured: Configure,
    start: Start,
    queue: str,
    kafka: EmbeddedKafka,
    proxied: Proxied,
) -> None:
    proxy = proxied(harness.port)
    proxy.piece_bytes, proxy.pause_seconds = 20_000, 0.002
    config = configured(harness.settings(queue, proxy.port))
    harness.send(queue, numbered(3000))

    source = start(config)
    for cuts in range(1, 3):
        until(lambda: source.count("received") >= 400 * cuts)  # noqa: B023 # used before the next round
        proxy.cut()
        until(lambda: source.count("reconnects") >= cuts)  # noqa: B023 # used before the next round
    until(lambda: source.count("journaled") >= 3000)
    until(lambda: set(numbers(kafka.bootstrap, config.journal.topic)) == set(range(3000)))
    source.stop()

    assert source.count("journaled") == len(numbers(kafka.bootstrap, config.journal.topic))


@pytest.mark.kills
def test_a_broker_that_is_killed_and_comes_back_loses_nothing(
    harness: Harness, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka
) -> None:
    config = configured(harness.settings(queue))
    harness.send(queue, numbered(3000))

    source = start(config)
    until(lambda: source.count("acknowledged") > 0)
    harness.kill()
    until(lambda: source.status.current.state is State.DEGRADED)
    harness.start()
    harness.send(queue, numbered(100, begin=3000))
    until(lambda: source.status.current.state is State.READY, 40)
    until(lambda: harness.waiting(queue) == 0)
    source.stop()

    assert source.error is None
    assert set(numbers(kafka.bootstrap, config.journal.topic)) == set(range(3100))


def test_a_broker_that_falls_silent_is_left_for_a_new_connection(
    harness: Harness,
    configured: Configure,
    start: Start,
    queue: str,
    kafka: EmbeddedKafka,
    proxied: Proxied,
) -> None:
    proxy = proxied(harness.port)
    config = configured(harness.settings(queue, proxy.port))
    source = start(config)
    until(lambda: source.connected)

    proxy.silence()
    until(lambda: source.status.current.state is State.DEGRADED)
    proxy.resume()
    harness.send(queue, numbered(5))
    source.acknowledges(5)

    assert sorted(numbers(kafka.bootstrap, config.journal.topic)) == list(range(5))


def test_a_slow_peer_is_waited_for_byte_by_byte(
    harness: Harness,
    configured: Configure,
    start: Start,
    queue: str,
    kafka: EmbeddedKafka,
    proxied: Proxied,
) -> None:
    proxy = proxied(harness.port)
    proxy.piece_bytes, proxy.pause_seconds = 1, 0.0005
    config = configured(harness.settings(queue, proxy.port))
    harness.send(queue, numbered(5))

    source = start(config)
    source.acknowledges(5)

    assert sorted(numbers(kafka.bootstrap, config.journal.topic)) == list(range(5))
    assert source.count("reconnects") == 0


def test_a_journal_that_stands_still_stops_the_reading_but_not_the_connection(
    harness: Harness, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka
) -> None:
    small = {"journal.max-message-bytes": "64KiB", "kafka.producer.buffer.memory": "4194304"}
    config = configured(harness.settings(queue) | small)
    harness.send(queue, numbered(8000, size=5000))
    before = resident_bytes()
    with paused(kafka.pid):
        source = start(config)
        # Longer than the broker waits for heart-beats.
        until(lambda: source.status.current.state is State.DEGRADED and "Kafka" in source.status.current.detail)
        read_until_then = source.count("received")
        time.sleep(4)  # what is tested is that nothing happens in this time
        assert source.count("received") == read_until_then < 5000
        grown = resident_bytes() - before
    source.acknowledges(8000, 60)
    source.stop()

    assert source.count("reconnects") == 0
    assert grown < 32 * 1024 * 1024
    assert sorted(numbers(kafka.bootstrap, config.journal.topic)) == list(range(8000))


def test_it_stops_in_time_while_the_journal_stands_still_and_nothing_is_lost(
    harness: Harness, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka
) -> None:
    config = configured(harness.settings(queue))
    harness.send(queue, numbered(50))
    with paused(kafka.pid):
        source = start(config)
        until(lambda: source.connected)
        source.stop(25)
    assert source.error is None
    assert harness.waiting(queue) == 50

    start(config).acknowledges(50)
    assert set(numbers(kafka.bootstrap, config.journal.topic)) == set(range(50))


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
