"""Sources of another Kafka cluster: every record once, through kills and moves between workers; new topics; faults."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from engine.connectors.base import NotConnectedError, Outgoing
from engine.connectors.endpoint import SystemEndpoint
from engine.connectors.kafka.settings import KafkaSinkConfig
from engine.connectors.kafka.sink import KafkaSink
from engine.connectors.system import connector
from engine.embedded import free_ports
from engine.errors import HardFailureError
from engine.message import Message
from engine.telemetry.status import State
from routes.properties import Property
from tests.integration.connectors.kafka_harness import admin, create, killed
from tests.integration.connectors.running import bodies, read, visible
from tests.integration.connectors.sinks import configure
from tests.integration.connectors.test_kafka_source import CODE, put
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from engine.embedded import EmbeddedKafka
    from routes.model import Config
    from tests.integration.connectors.conftest import Configure, Start


@pytest.fixture
def other(other_kafka: EmbeddedKafka) -> EmbeddedKafka:
    return other_kafka


def delete(server: EmbeddedKafka, topic: str) -> None:
    client = admin(server)
    client.delete_topics([topic])[topic].result(30)


def reading(server: EmbeddedKafka, *topics: str, **more: str) -> dict[str, str]:
    return {".type": "kafka", ".destinations": ", ".join(topics), ".bootstrap.servers": server.bootstrap, **more}


def depth(config: Config) -> int:
    endpoint = SystemEndpoint.of(config, config.sources[0])
    asked = connector(endpoint.settings.type).make_depth(endpoint)
    try:
        return asked.ask()
    finally:
        asked.close()


def check(config: Config) -> str:
    endpoint = SystemEndpoint.of(config, config.sources[0])
    return connector(endpoint.settings.type).check_connection(endpoint, "doctor")


def test_records_of_another_cluster_become_messages_once(
    other: EmbeddedKafka, configured: Configure, start: Start, queue: str
) -> None:
    create(other, queue, 3)
    config = configured(reading(other, queue))
    put(other.bootstrap, queue, [b"1", b"2"], b"key-1", {"colour": b"red"})
    assert depth(config) == 2
    assert check(config) == f"kafka://{other.bootstrap} takes the login; the source reads {queue}"
    source = start(config)
    source.acknowledges(2)
    source.stop()
    first, second = sorted(visible(config), key=lambda message: message.body)
    assert (first.body, second.body) == (b"1", b"2")
    assert first.properties["colour"].text == "red"
    assert first.headers["JMSDestination"] == f"topic:kafka.{queue}"
    assert first.headers["JMSCorrelationID"] == "key-1"
    assert abs(int(first.headers["JMSTimestamp"]) - time.time() * 1000) < 60_000
    assert depth(config) == 0

    put(other.bootstrap, queue, [b"3"])
    assert depth(config) == 1
    start(config).acknowledges(1)
    assert sorted(message.body for message in visible(config)) == [b"1", b"2", b"3"]


def test_a_topic_that_is_made_anew_is_read_from_its_start(
    other: EmbeddedKafka, configured: Configure, start: Start, queue: str
) -> None:
    create(other, queue)
    config = configured(reading(other, queue))
    put(other.bootstrap, queue, [b"old"] * 3)
    source = start(config)
    source.acknowledges(3)
    delete(other, queue)
    create(other, queue)
    put(other.bootstrap, queue, [b"new 1", b"new 2", b"new 3", b"new 4"])
    source.acknowledges(7)
    source.stop()
    delete(other, queue)
    create(other, queue)
    put(other.bootstrap, queue, [b"newer"] * 9)
    start(config).acknowledges(9)
    found = sorted(bodies(config.bootstrap_servers, config.journal.topic))
    assert found == sorted([b"old"] * 3 + [b"new 1", b"new 2", b"new 3", b"new 4"] + [b"newer"] * 9)


def test_workers_that_come_and_go_share_the_partitions_and_double_nothing(
    other: EmbeddedKafka, configured: Configure, start: Start, queue: str
) -> None:
    create(other, queue, 6)
    config = configured(reading(other, queue, **{".workers": "3"}))
    given = 0

    def give() -> None:
        nonlocal given
        put(other.bootstrap, queue, (str(n).encode() for n in range(given, given + 300)))
        given += 300

    def giving(condition: Callable[[], bool]) -> bool:
        give()
        return condition()

    first = start(config, 1)
    give()
    first.acknowledges(1)
    others = start(config, 2), start(config, 3)
    until(lambda: giving(lambda: all(each.count("acknowledged") for each in others)), 60)
    first.stop()
    before = [each.count("acknowledged") for each in others]
    until(
        lambda: giving(lambda: all(each.count("acknowledged") > n for each, n in zip(others, before, strict=True))), 60
    )
    until(lambda: depth(config) == 0, 60)
    for each in others:
        each.stop()
    found = sorted(map(int, bodies(config.bootstrap_servers, config.journal.topic)))
    assert found == list(range(given))


def test_another_cluster_that_is_away_is_waited_for_and_the_bridge_goes_on(
    configured: Configure, start: Start, queue: str
) -> None:
    (port,) = free_ports(1)
    config = configured({".type": "kafka", ".destinations": queue, ".bootstrap.servers": f"127.0.0.1:{port}"})
    source = start(config)
    until(lambda: source.status.current.state is State.DEGRADED, 60)
    assert f"127.0.0.1:{port}" in str(source.status.current)
    source.stop()
    assert source.error is None


@pytest.mark.kills
def test_kills_of_the_source_and_of_the_other_cluster_lose_and_double_nothing(
    other: EmbeddedKafka, configured: Configure, start: Start, queue: str
) -> None:
    create(other, queue, 3)
    config = configured(reading(other, queue))
    count = 0

    def depth_now() -> int:
        try:
            return depth(config)
        except (NotConnectedError, HardFailureError):
            return count

    for kill in range(6):
        put(other.bootstrap, queue, (str(n).encode() for n in range(count, count + 20_000)))
        count += 20_000
        before = depth_now()
        process = subprocess.Popen([sys.executable, "-c", CODE, str(config.path)])
        try:
            until(lambda before=before: depth_now() < before, 60)  # type: ignore[misc]
            if kill % 2:
                killed(other)
                other.start()
                time.sleep(1)
        finally:
            process.kill()
            process.wait()
    start(config)
    until(lambda: depth_now() == 0, 120)
    found = sorted(map(int, bodies(config.bootstrap_servers, config.journal.topic)))
    assert found == list(range(count))


@pytest.mark.kills
def test_a_worker_that_was_frozen_doubles_nothing_when_it_resumes(
    other: EmbeddedKafka, configured: Configure, start: Start, queue: str
) -> None:
    create(other, queue, 3)
    config = configured(reading(other, queue, **{".workers": "2"}))
    count = 60_000
    put(other.bootstrap, queue, (str(n).encode() for n in range(count)))
    process = subprocess.Popen([sys.executable, "-c", CODE, str(config.path)])
    try:
        until(lambda: depth(config) < count, 60)
        process.send_signal(signal.SIGSTOP)
        second = start(config, 2)
        second.acknowledges(1)
        process.send_signal(signal.SIGCONT)
        until(lambda: depth(config) == 0, 120)
        # Both have partitions again.
        put(other.bootstrap, queue, (str(n).encode() for n in range(count, count + 3000)))
        until(lambda: depth(config) == 0, 60)
    finally:
        process.kill()
        process.wait()
    found = sorted(map(int, bodies(config.bootstrap_servers, config.journal.topic)))
    assert found == list(range(count + 3000))


def sinking(folder: Path, kafka: EmbeddedKafka, other: EmbeddedKafka, name: str) -> SystemEndpoint[KafkaSinkConfig]:
    settings = {".type": "kafka", ".bootstrap.servers": other.bootstrap, "bridge.secret": "s" * 32}
    config = configure(folder, kafka.bootstrap, name, settings)
    sink = config.sinks[0]
    assert isinstance(sink, KafkaSinkConfig)
    return SystemEndpoint.of(config, sink)


def outgoing(topic: str, *offsets: int) -> list[Outgoing]:
    """Messages of partition 0 of the sink's topic."""
    message = Message(headers={"JMSMessageID": "ID:1"}, properties={"colour": Property("red")})
    return [
        Outgoing(
            each, replace(message, body=str(each).encode()), topic, str(each), None, 1000 + each, 0, each, 100, b"k"
        )
        for each in offsets
    ]


def test_a_sink_that_has_lost_its_partition_writes_nothing_more(
    kafka: EmbeddedKafka, other: EmbeddedKafka, tmp_path: Path, queue: str
) -> None:
    create(other, queue, 2)
    endpoint = sinking(tmp_path, kafka, other, queue)
    first, second = KafkaSink(endpoint, 1), KafkaSink(endpoint, 2)
    first.connect()
    first.send(outgoing(queue, 0, 1, 2))
    assert [each.refusal for each in first.outcomes(0)] == [None] * 3
    second.connect()
    # The reader of the sink's topic has not heard of the last one.
    second.send(outgoing(queue, 1, 2, 3))
    assert [each.number for each in second.outcomes(0)] == [1, 2, 3]
    first.send(outgoing(queue, 3, 4))
    with pytest.raises(NotConnectedError):
        first.outcomes(0)
    first.connect()
    first.send(outgoing(queue, 3, 4))
    assert [each.number for each in first.outcomes(0)] == [3, 4]
    first.close()
    second.close()
    found = read(other.bootstrap, queue)
    assert sorted(int(each.record.value or b"") for each in found) == [0, 1, 2, 3, 4]
    assert {each.record.key for each in found} == {b"k"}
    assert {each.record.header("jms.colour") for each in found} == {"red"}
    assert sorted(each.timestamp_ms for each in found) == [1000, 1001, 1002, 1003, 1004]


def test_what_another_cluster_refuses_is_refused_again_and_the_rest_is_written_once(
    kafka: EmbeddedKafka, other: EmbeddedKafka, tmp_path: Path, queue: str
) -> None:
    create(other, queue)
    endpoint = sinking(tmp_path, kafka, other, queue)
    given = [*outgoing(queue, 0), *outgoing(f"{queue}-missing", 1), *outgoing(queue, 2), *outgoing("__internal", 3)]
    for _ in range(2):
        sink = KafkaSink(endpoint, 1)
        sink.connect()
        sink.send(given)
        refused = {each.number: each.refusal for each in sink.outcomes(0)}
        assert "UNKNOWN_TOPIC_OR_PART" in (refused.pop(1) or "")
        assert refused.pop(3) == "'__internal' is not a topic to write to"
        assert refused == {0: None, 2: None}
        sink.close()
    assert [each.record.value for each in read(other.bootstrap, queue)] == [b"0", b"2"]


def test_a_position_that_others_have_written_does_not_count(
    kafka: EmbeddedKafka, other: EmbeddedKafka, tmp_path: Path, queue: str
) -> None:
    create(other, queue)
    endpoint = sinking(tmp_path, kafka, other, queue)
    sink = KafkaSink(endpoint, 1)
    sink.connect()
    put(other.bootstrap, endpoint.settings.position_topic, [b"50 9999"], f"{endpoint.bridge_id}/out/0".encode())
    sink.send(outgoing(queue, 0, 1))
    assert len(sink.outcomes(0)) == 2
    sink.close()
    assert [each.record.value for each in read(other.bootstrap, queue)] == [b"0", b"1"]
