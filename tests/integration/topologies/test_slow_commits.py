"""Topologies in real time whose broker takes long to commit."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from engine.embedded import free_ports
from engine.jars import jars
from tests.integration.topologies.conftest import PARTITIONS, TopologyBench
from tests.integration.topologies.slow_commits import KafkaBehindProxy, SlowCommits
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RECORDS = 20_000
_MOST_SECONDS = 180


@pytest.fixture
def commits() -> Iterator[SlowCommits]:
    (port,) = free_ports(1)
    made = SlowCommits(port)
    yield made
    made.close()


@pytest.fixture
def slow(tmp_path: Path, commits: SlowCommits) -> Iterator[TopologyBench]:
    kafka = KafkaBehindProxy(tmp_path / "kafka", commits.target_port, jars(), commits.port)
    kafka.start()
    bench = TopologyBench(tmp_path, kafka.bootstrap)
    yield bench
    bench.close()
    kafka.stop()


def seconds_for(bench: TopologyBench, count: int) -> float:
    """Time in which so many clicks that are sent now are published."""
    topic = f"{bench.prefix}-counts-out"
    own = {"bootstrap.servers": bench.bootstrap, "group.id": "test", "log_level": 0}
    consumer = Consumer({**own, "isolation.level": "read_committed"})
    places = [TopicPartition(topic, number) for number in range(PARTITIONS)]

    def is_known(place: TopicPartition) -> bool:
        try:
            _, place.offset = consumer.get_watermark_offsets(place, timeout=10)
        except KafkaException:  # The partition of a new topic has no leader for a moment.
            return False
        return True

    until(lambda: all(map(is_known, places)))
    consumer.assign(places)
    began, found = time.monotonic(), 0
    bench.send_clicks(count)
    while found < count:
        found += len(consumer.consume(10_000, 0.5))
        assert time.monotonic() - began < _MOST_SECONDS, f"{found:,} of {count:,} records"
    consumer.close()
    return time.monotonic() - began


def test_a_commit_takes_what_came_during_the_one_before(slow: TopologyBench, commits: SlowCommits) -> None:
    process = slow.start("copied", "--mode", "realtime", "--interval", "60m")
    seconds_for(slow, RECORDS)
    commits.seconds, before = 0.5, commits.commits
    seconds_for(slow, RECORDS)
    # One record a transaction would be as many commits as records.
    assert commits.commits - before < RECORDS / 100
    slow.stop(process)


@pytest.mark.kills
def test_slow_commits_cost_a_tenth_of_the_throughput_at_most(slow: TopologyBench, commits: SlowCommits) -> None:
    process = slow.start("copied", "--mode", "realtime", "--interval", "60m")
    count = RECORDS
    # As many as take twenty seconds, so that the last commit counts little.
    while (quick := seconds_for(slow, count)) < 20:
        count *= 2
    commits.seconds = 0.5
    late = seconds_for(slow, count)
    print(f"{count:,} records: {quick:.1f} s, with commits of half a second {late:.1f} s, ratio {quick / late:.2f}")
    assert quick / late > 0.9
    slow.stop(process)
