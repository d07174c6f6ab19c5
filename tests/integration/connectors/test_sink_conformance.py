"""What every sink must do, whatever it connects to. A connector joins with its harness, see `conftest`."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from engine.dead_letters.replay import ReplayOutcome, replay
from engine.dead_letters.store import DeadLetterStore
from engine.embedded import free_ports
from engine.message import BodyType, Message
from engine.telemetry.status import State
from routes.properties import JmsType, Property
from tests.integration.connectors.running import read
from tests.integration.connectors.sinks import (
    SINK,
    RouterStandIn,
    committed,
    configure,
    in_order,
    is_waited_for,
    numbered,
    numbers,
)
from tests.integration.connectors.systems import PROXIED_SINKS, delivery_of_sinks
from tests.integration.connectors.worker import start_worker
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from engine.embedded import EmbeddedKafka
    from routes.model import Config
    from tests.conftest import TopicFactory
    from tests.integration.connectors.conftest import Proxied, StartSink
    from tests.integration.connectors.sinks import SinkHarness


@pytest.fixture
def config(sink_harness: SinkHarness, tmp_path: Path, kafka: EmbeddedKafka, queue: str) -> Config:
    sink_harness.create(queue)
    return configure(tmp_path, kafka.bootstrap, queue, sink_harness.settings())


def test_it_delivers_what_is_there_and_nothing_of_it_again(
    sink_harness: SinkHarness, config: Config, start_sink: StartSink, queue: str
) -> None:
    router = RouterStandIn(config)
    router.give(sink_harness.address(queue), numbered(20))
    sink = start_sink(config)
    sink.delivers(20)
    until(lambda: sink.status.current.state is State.READY, 60, "ready")
    router.give(sink_harness.address(queue), numbered(5, begin=20))
    sink.delivers(25)
    sink.stop()
    assert sink.error is None
    assert committed(config) == 25

    again = start_sink(config)
    router.give(sink_harness.address(queue), numbered(1, begin=25))
    again.delivers(1)
    again.stop()
    assert again.count("delivered_messages") == 1
    found = numbers(sink_harness.arrived(queue, 26))
    assert sorted(found) == list(range(26))
    assert in_order(found)


@delivery_of_sinks("stomp_sink", "nats_sink")
def test_messages_of_a_journal_that_was_made_anew_are_not_taken_for_those_of_the_one_before(
    sink_harness: SinkHarness, config: Config, start_sink: StartSink, queue: str
) -> None:
    """They have the same positions."""
    sink = start_sink(config)
    RouterStandIn(config).give(sink_harness.address(queue), numbered(10))
    sink.delivers(10)
    RouterStandIn(config).give(sink_harness.address(queue), numbered(10, begin=10))
    sink.delivers(20)
    assert sorted(numbers(sink_harness.arrived(queue, 20))) == list(range(20))


def test_bodies_fields_and_properties_arrive(
    sink_harness: SinkHarness, config: Config, start_sink: StartSink, queue: str
) -> None:
    properties = {"region": Property("emea", JmsType.STRING), "amount": Property("5", JmsType.INT)}
    headers = {"JMSMessageID": "ID:1", "JMSCorrelationID": "c:1", "JMSType": "new"}
    text = Message("grüße \u20ac".encode(), headers=headers, properties=properties)
    data = Message(bytes(range(256)), BodyType.BYTES, headers, properties)
    empty = Message(b"", headers=headers)
    RouterStandIn(config).give(sink_harness.address(queue), [text, data, empty])
    start_sink(config).delivers(3)

    arrived = sink_harness.arrived(queue, 3)
    assert [each.body for each in arrived] == [text.body, data.body, b""]
    for each in arrived[:2]:
        assert each.headers["region"] == "emea"
        assert each.headers["amount"] == "5"
        assert "c:1" in each.headers.values()
        assert "new" in each.headers.values()
        assert not [name for name in each.headers if "destination" in name.lower() and "jmsbridge" in name]


@pytest.fixture
def slowed(sink_harness: SinkHarness, tmp_path: Path, kafka: EmbeddedKafka, queue: str, proxied: Proxied) -> Config:
    """The same with a broker that confirms about two thousand messages a second."""
    sink_harness.create(queue)
    proxy = proxied(sink_harness.port)
    proxy.piece_bytes, proxy.pause_seconds = 2000, 0.03
    return configure(tmp_path, kafka.bootstrap, queue, sink_harness.settings(proxy.port))


def test_many_arrive_once_and_in_order_through_stops_and_starts(
    sink_harness: SinkHarness, slowed: Config, start_sink: StartSink, queue: str
) -> None:
    config = slowed
    RouterStandIn(config).give(sink_harness.address(queue), numbered(5_000, size=200))
    delivered = 0
    for _ in range(2):
        sink = start_sink(config)
        sink.delivers(1)
        sink.stop()
        assert sink.error is None
        delivered += sink.count("delivered_messages")
    last = start_sink(config)
    last.delivers(5_000 - delivered)
    last.stop()
    assert committed(config) == 5_000
    found = numbers(sink_harness.arrived(queue, 5_000))
    assert sorted(found) == list(range(5_000))
    assert in_order(found)


@pytest.mark.kills
def test_a_broker_that_is_killed_and_comes_back_has_everything_once_and_in_order(
    sink_harness: SinkHarness, config: Config, start_sink: StartSink, queue: str
) -> None:
    router = RouterStandIn(config)
    router.give(sink_harness.address(queue), numbered(3000, size=500))
    sink = start_sink(config)
    sink.delivers(200)
    sink_harness.kill()
    until(lambda: sink.status.current.state is State.DEGRADED, 60, "degraded")
    router.give(sink_harness.address(queue), numbered(100, begin=3000))
    sink_harness.start()
    # What the broker had stored but not confirmed is sent again, and counted once.
    sink.delivers(3100)
    sink.stop()
    assert sink.error is None
    assert sink.count("reconnects") >= 1
    assert committed(config) == 3100
    found = numbers(sink_harness.arrived(queue, 3100))
    assert sorted(found) == list(range(3100))
    assert in_order(found)


@pytest.mark.parametrize("sink_harness", PROXIED_SINKS, indirect=True)
def test_connections_that_are_cut_lose_and_double_nothing(
    sink_harness: SinkHarness,
    tmp_path: Path,
    kafka: EmbeddedKafka,
    queue: str,
    start_sink: StartSink,
    proxied: Proxied,
) -> None:
    sink_harness.create(queue)
    proxy = proxied(sink_harness.port)
    # Slow in the sink's direction until both cuts are made: otherwise a fast sink has confirmed all before the first.
    proxy.piece_bytes, proxy.pause_up_seconds = 4000, 0.01
    config = configure(tmp_path, kafka.bootstrap, queue, sink_harness.settings(proxy.port))
    RouterStandIn(config).give(sink_harness.address(queue), numbered(2000, size=300))
    sink = start_sink(config)
    for part in (1, 800):
        sink.delivers(part)
        proxy.cut()
    proxy.pause_up_seconds = 0
    sink.delivers(2000)
    sink.stop()
    assert sink.count("reconnects") >= 1
    found = numbers(sink_harness.arrived(queue, 2000))
    assert sorted(found) == list(range(2000))
    assert in_order(found)


@pytest.mark.parametrize("sink_harness", PROXIED_SINKS, indirect=True)
def test_a_slow_peer_holds_the_sink_back_without_losing_anything(
    sink_harness: SinkHarness,
    tmp_path: Path,
    kafka: EmbeddedKafka,
    queue: str,
    start_sink: StartSink,
    proxied: Proxied,
) -> None:
    sink_harness.create(queue)
    proxy = proxied(sink_harness.port)
    proxy.piece_bytes, proxy.pause_seconds = 500, 0.02
    config = configure(tmp_path, kafka.bootstrap, queue, sink_harness.settings(proxy.port))
    RouterStandIn(config).give(sink_harness.address(queue), numbered(1000, size=1000))
    sink = start_sink(config)
    sink.delivers(1)
    proxy.pause_seconds = 0
    sink.delivers(1000)
    sink.stop()
    assert sorted(numbers(sink_harness.arrived(queue, 1000))) == list(range(1000))


@delivery_of_sinks("stomp_sink")
def test_two_workers_share_the_work_and_keep_the_order_of_keys(
    sink_harness: SinkHarness, config: Config, start_sink: StartSink, queue: str
) -> None:
    router = RouterStandIn(config)
    both = start_sink(config), start_sink(config, 2)
    for part in range(10):
        router.give(sink_harness.address(queue), numbered(300, begin=300 * part))
        time.sleep(0.3)
    until(lambda: sum(sink.count("delivered_messages") for sink in both) >= 3000, 60, "3000 delivered")
    for sink in both:
        sink.stop()
        assert sink.error is None
    found = numbers(sink_harness.arrived(queue, 3000))
    assert sorted(found) == list(range(3000))
    assert in_order(found)


def test_what_the_other_side_refuses_becomes_a_dead_letter_and_the_rest_goes_on(
    sink_harness: SinkHarness,
    tmp_path: Path,
    kafka: EmbeddedKafka,
    topic: TopicFactory,
    queue: str,
    start_sink: StartSink,
) -> None:
    sink_harness.create(queue)
    dead = topic("dead")
    settings = {
        **sink_harness.settings(),
        "routing.dead-letter-topic": dead,
        "routing.on-soft-failure": "dead-letter",
        "routes.other.in.include": "x = 1",
        "routes.other.out.topic": "other",
        "routes.other.on-soft-failure": "skip",
    }
    config = configure(tmp_path, kafka.bootstrap, queue, settings)
    router = RouterStandIn(config)
    router.give(sink_harness.address(queue), numbered(10))
    for message in numbered(2, begin=10):
        address, refused = sink_harness.refused(message)
        router.give(address, [refused])
    router.give(sink_harness.address(queue), numbered(10, begin=12))
    router.give(address, [sink_harness.refused(*numbered(1, begin=22))[1]], route="other")
    router.give(sink_harness.address(queue), numbered(10, begin=23))
    sink = start_sink(config)
    sink.delivers(30)
    until(lambda: committed(config) == 33, 60, "all dealt with")
    sink.stop()

    assert sink.error is None
    assert sink.count("rejected_messages", reason="refused", policy="dead-letter") == 2
    assert sink.count("rejected_messages", reason="refused", policy="skip") == 1
    letters = [located.record for located in read(kafka.bootstrap, dead)]
    assert sorted(int(letter.value or b"") for letter in letters) == [10, 11]
    assert {letter.header("jmsbridge.route") for letter in letters} == {"r"}
    assert {letter.header("__connect.errors.stage") for letter in letters} == {f"sink {SINK}"}
    assert all(letter.header("__connect.errors.exception.message") for letter in letters)
    found = numbers(sink_harness.arrived(queue, 30))
    assert sorted(found) == [*range(10), *range(12, 22), *range(23, 33)]
    assert in_order(found)


@delivery_of_sinks("stomp_sink")
def test_by_the_default_policy_what_is_refused_is_set_aside_and_ends_nothing(
    sink_harness: SinkHarness,
    tmp_path: Path,
    kafka: EmbeddedKafka,
    queue: str,
    start_sink: StartSink,
) -> None:
    sink_harness.create(queue)
    config = configure(tmp_path, kafka.bootstrap, queue, sink_harness.settings(), dead_letters=False)
    address, refused = sink_harness.refused(*numbered(1))
    router = RouterStandIn(config)
    router.give(address, [refused])
    router.give(sink_harness.address(queue), numbered(1, begin=1))
    sink = start_sink(config)
    sink.delivers(1)
    until(lambda: committed(config) == 2, 60, "all dealt with")
    sink.stop()
    assert sink.error is None
    assert sink.count("rejected_messages", reason="refused", policy="dead-letter") == 1
    assert config.letter_topic == f"{config.journal.topic}.set-aside"
    assert [located.record.value for located in read(kafka.bootstrap, config.letter_topic)] == [b"0"]


def test_what_has_expired_is_dropped_and_counted(
    sink_harness: SinkHarness, config: Config, start_sink: StartSink, queue: str
) -> None:
    expiring = numbered(3)
    times = (str(int(time.time() * 1000) - 1), str(int(time.time() * 1000) + 3_600_000), "0")
    messages = [
        replace(message, headers={**message.headers, "JMSExpiration": at})
        for message, at in zip(expiring, times, strict=True)
    ]
    RouterStandIn(config).give(sink_harness.address(queue), messages)
    sink = start_sink(config)
    sink.delivers(2)
    until(lambda: committed(config) == 3, 60, "all dealt with")
    sink.stop()
    assert sink.error is None
    assert (sink.count("delivered_messages"), sink.count("expired_messages")) == (2, 1)
    assert sorted(numbers(sink_harness.arrived(queue, 2))) == [1, 2]


@pytest.mark.kills
def test_dead_letters_are_written_once_through_kills_and_replayed_once(
    sink_harness: SinkHarness, config: Config, start_sink: StartSink, queue: str
) -> None:
    router, count, each_time, interrupted = RouterStandIn(config), 0, 4000, 0
    for _ in range(4):
        for number in range(count, count + each_time, 2):
            address, refused = sink_harness.refused(*numbered(1, begin=number))
            router.add(address, refused)
            router.add(sink_harness.address(queue), *numbered(1, begin=number + 1))
        router.flush()
        count += each_time
        before = committed(config)
        process = start_worker("sink", "out", config.path)
        try:
            until(lambda before=before: committed(config) > before, 60, "some progress")
            assert process.poll() is None
        finally:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        interrupted += committed(config) < count
    assert interrupted, "nothing was left to do at any kill"
    sink = start_sink(config)
    until(lambda: committed(config) == count, 90, "all dealt with")
    sink.stop()
    assert sink.error is None

    letters = [int(located.record.value or b"") for located in read(config.bootstrap_servers, config.letter_topic)]
    assert sorted(letters) == list(range(0, count, 2))
    done = Counter(each.outcome for each in replay(DeadLetterStore.of(config), None))
    assert done == {ReplayOutcome.REPLAYED: count // 2}
    assert sorted(numbers(sink_harness.arrived(queue, count // 2))) == list(range(1, count, 2))


def test_a_broker_that_is_not_there_at_start_is_waited_for(
    sink_harness: SinkHarness,
    tmp_path: Path,
    kafka: EmbeddedKafka,
    queue: str,
    start_sink: StartSink,
    proxied: Proxied,
) -> None:
    sink_harness.create(queue)
    (port,) = free_ports(1)
    config = configure(tmp_path, kafka.bootstrap, queue, sink_harness.settings(port))
    target = sink_harness.port
    RouterStandIn(config).give(sink_harness.address(queue), numbered(10))
    sink = start_sink(config)
    is_waited_for(sink)
    proxied(target, port)
    sink.delivers(10)
    assert sorted(numbers(sink_harness.arrived(queue, 10))) == list(range(10))


@pytest.mark.kills
def test_a_process_that_is_killed_again_and_again_loses_and_doubles_nothing(
    sink_harness: SinkHarness, slowed: Config, start_sink: StartSink, queue: str
) -> None:
    config = slowed
    RouterStandIn(config).give(sink_harness.address(queue), numbered(10_000, size=300))
    for _ in range(3):
        before = committed(config)
        process = start_worker("sink", "out", config.path)
        try:
            until(lambda before=before: committed(config) > before, 60, "some progress")
            assert process.poll() is None
        finally:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
    sink = start_sink(config)
    until(lambda: committed(config) == 10_000, 60, "all delivered")
    sink.stop()
    found = numbers(sink_harness.arrived(queue, 10_000))
    assert sorted(found) == list(range(10_000))
    assert in_order(found)
