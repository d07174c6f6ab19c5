"""Windows and timers that follow the clock, on a real Kafka: through kills, and without further records."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from tests.waiting import until

if TYPE_CHECKING:
    from tests.integration.topologies.conftest import TopologyBench

LATE_MS = 20_000
"""Time of a timer that is due while nothing runs: longer than a stop takes."""
KILLS = 20
MODES = [
    pytest.param("closed", ("--mode", "realtime", "--interval", "30s"), id="realtime"),
    pytest.param("closed", ("--mode", "batch"), id="batch"),
    pytest.param("closed_pages", ("--mode", "batch", "--interval", "300ms"), id="internal"),
]


def send(bench: TopologyBench, first: int, count: int) -> list[tuple[str, int]]:
    """Sends numbered clicks with the times at which they are sent; returns key and time of each."""
    producer = bench._producer()
    sent = []
    for number in range(first, first + count):
        key, at = f"k{number % 3}", round(time.time() * 1000)
        value = json.dumps({"page": key, "n": number})
        producer.produce(f"{bench.prefix}-clicks", value, key, timestamp=at)
        sent.append((key, at))
    assert producer.flush(30) == 0
    return sent


def windows(sent: list[tuple[str, int]]) -> Counter[tuple[str, int]]:
    """Number of clicks by key and beginning of the second."""
    return Counter((key, at - at % 1000) for key, at in sent)


def published(bench: TopologyBench) -> list[tuple[tuple[str, int], int]]:
    """Key, beginning and number of clicks of each window that was published."""
    return [((key, _start(value["window_start"])), value["times"]) for key, value in bench.published("counts-out")]


def _start(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def check(bench: TopologyBench, sent: list[tuple[str, int]]) -> None:
    """All windows come to be closed, each once, with all of their clicks, and none of these is late."""
    expected = windows(sent)
    until(lambda: len(published(bench)) >= len(expected), 60, f"{len(expected)} windows")
    assert sorted(published(bench)) == sorted(expected.items())


@pytest.mark.parametrize(("name", "options"), MODES)
def test_windows_close_without_a_further_record(bench: TopologyBench, name: str, options: tuple[str, ...]) -> None:
    process = bench.start(name, *options)
    sent = send(bench, 0, 30)
    check(bench, sent)
    time.sleep(1)
    sent += send(bench, 30, 30)
    check(bench, sent)
    bench.stop(process)
    # Clicks that wait in Kafka while the topology is down are late for the clock, and not for their windows.
    sent += send(bench, 60, 30)
    time.sleep(4)
    sent += send(bench, 90, 30)
    process = bench.start(name, *options)
    check(bench, sent)
    bench.stop(process)


def test_a_late_timer_of_the_clock_fires_after_a_restart(bench: TopologyBench) -> None:
    process = bench.start("awaited", "--interval", "300ms")
    send(bench, 1, 1)
    bench.comes_to("processed-out", 1)
    send(bench, LATE_MS, 1)
    sent = time.monotonic()
    send(bench, 1, 1)
    bench.comes_to("processed-out", 2)
    bench.stop(process)
    assert len(bench.published("processed-out")) == 2
    time.sleep(max(0, sent + LATE_MS / 1000 - time.monotonic()))
    process = bench.start("awaited", "--interval", "300ms")
    bench.comes_to("processed-out", 3)
    time.sleep(1)
    bench.stop(process)
    assert [value["n"] for _, value in bench.published("processed-out")] == [1, 1, LATE_MS]


@pytest.mark.kills
@pytest.mark.parametrize(("name", "options"), MODES)
def test_windows_close_once_through_kills(bench: TopologyBench, name: str, options: tuple[str, ...]) -> None:
    chance = random.Random(name)  # noqa: S311
    sent: list[tuple[str, int]] = []
    for kill in range(KILLS):
        process = bench.start_alone(name, *options)
        sent += send(bench, len(sent), 20)
        until(lambda: bench.log.read_text().count("topology runs") > kill, 120, "a run")  # noqa: B023
        end = time.monotonic() + chance.uniform(1, 7)
        while time.monotonic() < end:
            sent += send(bench, len(sent), chance.randrange(1, 20))
            time.sleep(chance.uniform(0, 0.5))
        bench.kill(process)
    process = bench.start_alone(name, *options)
    check(bench, sent)
    bench.stop(process)
