"""What every source must do, whatever it connects to. A connector joins with its harness, see `conftest`."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.errors import HardFailureError, SoftFailureError, UnreachableError
from engine.message import BodyType
from engine.status import State
from engine.topics import ensure_journal
from tests.integration.connectors.harness import Outgoing
from tests.integration.connectors.running import bodies, configure, read, until

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.embedded import EmbeddedKafka
    from tests.conftest import TopicFactory
    from tests.integration.connectors.conftest import Configure, Start
    from tests.integration.connectors.harness import Harness
    from tests.integration.connectors.proxy import Proxy


def numbered(count: int, size: int = 0, begin: int = 0) -> list[Outgoing]:
    return [Outgoing(str(n).encode().ljust(size, b".")) for n in range(begin, begin + count)]


def numbers(kafka: EmbeddedKafka, journal: str) -> list[int]:
    return [int(body.rstrip(b".")) for body in bodies(kafka.bootstrap, journal)]


def test_it_connects_takes_what_is_there_and_leaves_nothing_behind(
    harness: Harness, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka
) -> None:
    config = configured(harness.settings(queue))
    harness.send(queue, numbered(10))

    source = start(config)
    source.acknowledges(10)
    assert source.connected
    assert source.status.current.state is State.READY
    source.stop()

    assert source.error is None
    assert not source.connected
    assert harness.waiting(queue) == 0
    assert sorted(numbers(kafka, config.journal.topic)) == list(range(10))
    assert source.count("received") == source.count("journaled") == source.count("acknowledged") == 10


def test_what_was_taken_once_does_not_come_again_after_a_clean_stop(
    harness: Harness,
    configured: Configure,
    start: Start,
    queue: str,
    kafka: EmbeddedKafka,
    proxied: Callable[[int], Proxy],
) -> None:
    proxy = proxied(harness.port)
    proxy.piece_bytes, proxy.pause_seconds = 20_000, 0.02
    config = configured(harness.settings(queue, proxy.port))
    harness.send(queue, numbered(3000))

    taken = 0
    for _ in range(3):
        source = start(config)
        source.acknowledges(1)
        source.stop()
        assert source.error is None
        assert source.count("received") == source.count("acknowledged")
        taken += source.count("acknowledged")
    assert taken + harness.waiting(queue) == 3000
    assert taken < 3000
    last = start(config)
    last.acknowledges(3000 - taken)

    assert sorted(numbers(kafka, config.journal.topic)) == list(range(3000))


def test_messages_of_one_key_keep_their_order_and_their_partition(
    harness: Harness, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka
) -> None:
    config = configured(harness.settings(queue))
    fields = {n: {"JMSCorrelationID": f"key-{n % 7}"} for n in range(2000)}
    harness.send(queue, [Outgoing(str(n).encode(), fields=fields[n]) for n in range(2000)])

    start(config).acknowledges(2000)

    placed: dict[str | None, list[tuple[int, int]]] = {}
    for located in read(kafka.bootstrap, config.journal.topic):
        placed.setdefault(located.message.key, []).append((located.partition, int(located.record.value or b"")))
    assert sorted(key or "" for key in placed) == [f"key-{n}" for n in range(7)]
    for key, places in placed.items():
        assert len({partition for partition, _ in places}) == 1, key
        assert [n for _, n in places] == sorted(n for _, n in places)
    assert len({places[0][0] for places in placed.values()}) == 2


def test_fields_and_properties_arrive_whole(
    harness: Harness, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka
) -> None:
    config = configured(harness.settings(queue))
    later = str(int(time.time() * 1000) + 3_600_000)
    fields = {
        "JMSCorrelationID": "ID:host-1234-1:1",
        "JMSType": "invoice",
        "JMSPriority": "7",
        "JMSExpiration": later,
        "JMSReplyTo": "replies",
        "JMSXGroupID": "group é",
    }
    fields = {name: value for name, value in fields.items() if name in harness.settable}
    odd = {
        "a.b-c": "dots",
        "with space": "x",
        "é名": "ümlaut ☃",
        "colon:name": "a:b",
        "empty": "",
        "lines": "a\nb\r\nc\\d\r",
    }
    many = {f"property_{n}": str(n) for n in range(300)}
    harness.send(queue, [Outgoing(fields=fields, properties=odd | many)])

    start(config).acknowledges(1)

    (located,) = read(kafka.bootstrap, config.journal.topic)
    message = located.message
    assert {name: value.text for name, value in message.properties.items()} == odd | many
    expected = {**fields, "JMSReplyTo": "queue:replies"} if "JMSReplyTo" in fields else fields
    assert {name: message.headers[name] for name in expected} == expected
    assert message.headers["JMSDestination"] == f"queue:{queue}"
    assert message.headers["JMSMessageID"].startswith("ID:")
    assert message.headers["JMSRedelivered"] == "false"
    assert message.headers["JMSDeliveryMode"] == "PERSISTENT"
    assert message.source == "src"
    assert abs(located.timestamp_ms - time.time() * 1000) < 60_000


@pytest.mark.parametrize(
    "body",
    [
        b"",
        "hällo ☃\n\r\n\t".encode(),
        b"with\0nul\0",
        b"MESSAGE\na:b\n\nc\0\n\nMESSAGE\n\n\0",
        b"x" * 1024 * 1024,
    ],
    ids=["empty", "unicode", "nul", "looks like a frame", "1 MiB"],
)
def test_a_text_arrives_as_it_was_sent(
    harness: Harness, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka, body: bytes
) -> None:
    config = configured(harness.settings(queue))
    text = b"\0" not in body
    harness.send(queue, [Outgoing(body, text=text)])

    start(config).acknowledges(1)

    (located,) = read(kafka.bootstrap, config.journal.topic)
    assert located.record.value == body
    assert located.message.body_type is (BodyType.TEXT if text else BodyType.BYTES)


@pytest.mark.parametrize("size", [1, 256, 1024 * 1024])
def test_bytes_arrive_as_they_were_sent(
    harness: Harness, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka, size: int
) -> None:
    config = configured(harness.settings(queue))
    body = bytes(n % 256 for n in range(255, 255 + size))
    harness.send(queue, [Outgoing(body, text=False)])

    start(config).acknowledges(1)

    (located,) = read(kafka.bootstrap, config.journal.topic)
    assert located.record.value == body
    assert located.message.body_type is BodyType.BYTES


def test_a_message_too_large_stays_with_the_broker_if_the_policy_is_to_stop(
    harness: Harness, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka
) -> None:
    config = configured(harness.settings(queue) | {"journal.max-message-bytes": "64KiB"})
    harness.send(queue, [Outgoing(b"small"), Outgoing(b"x" * 100_000), Outgoing(b"after")])

    source = start(config)
    source.join()

    assert isinstance(source.error, SoftFailureError)
    assert f"from queue:{queue} is too large for the journal: 1" in str(source.error)
    assert "the journal takes 65536; it stays with the broker" in str(source.error)
    assert bodies(kafka.bootstrap, config.journal.topic) == [b"small"]
    assert harness.waiting(queue) == 2


@pytest.mark.parametrize("size", [70_000, 20 * 1024 * 1024], ids=["just over", "20 MiB"])
@pytest.mark.parametrize("policy", ["skip", "dead-letter"])
def test_a_message_too_large_is_dealt_with_once_and_the_others_go_on(
    harness: Harness,
    configured: Configure,
    start: Start,
    queue: str,
    kafka: EmbeddedKafka,
    topic: TopicFactory,
    policy: str,
    size: int,
) -> None:
    dead = topic("dead")
    policies = {"routing.on-soft-failure": policy, "routing.dead-letter-topic": dead}
    config = configured(harness.settings(queue) | {"journal.max-message-bytes": "64KiB"} | policies)
    large = Outgoing(b"x" * size, text=False, properties={"region": "emea"})
    harness.send(queue, [Outgoing(b"small"), large, Outgoing(b"after")])

    source = start(config)
    source.acknowledges(3)
    source.stop()

    assert source.error is None
    assert sorted(bodies(kafka.bootstrap, config.journal.topic)) == [b"after", b"small"]
    assert harness.waiting(queue) == 0
    assert source.count("rejected", reason="too-large") == 1
    assert source.count("journaled") == 2
    letters = read(kafka.bootstrap, dead)
    assert len(letters) == (policy == "dead-letter")
    for letter in letters:
        assert letter.record.value == b"x" * 65536
        assert letter.record.header("jms.region") == "emea"
        assert letter.record.header("jmsbridge.reason") == "too-large"
        assert int(letter.record.header("jmsbridge.truncated") or 0) >= size


def test_a_journal_that_is_missing_stops_it_and_nothing_is_acknowledged(
    harness: Harness, start: Start, queue: str, kafka: EmbeddedKafka, tmp_path: Path
) -> None:
    config = configure(tmp_path, kafka.bootstrap, f"missing-{queue}", harness.settings(queue))
    harness.send(queue, numbered(5))

    refused = start(config)
    refused.join(60)

    assert isinstance(refused.error, HardFailureError)
    assert f"refuses topic 'missing-{queue}': there is no such topic" in str(refused.error)
    assert harness.waiting(queue) == 5

    ensure_journal(config)
    start(config).acknowledges(5)
    assert sorted(numbers(kafka, config.journal.topic)) == list(range(5))


def test_a_broker_that_is_not_there_yet_is_waited_for(
    harness: Harness,
    configured: Configure,
    start: Start,
    queue: str,
    kafka: EmbeddedKafka,
    proxied: Callable[[int], Proxy],
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

    assert sorted(numbers(kafka, config.journal.topic)) == list(range(5))


def test_a_broker_that_stays_away_too_long_ends_it(
    harness: Harness, configured: Configure, start: Start, queue: str
) -> None:
    config = configured(harness.settings(queue, 1) | {"router.outage-timeout": "1s"})

    source = start(config)
    source.join()

    assert isinstance(source.error, UnreachableError)
    assert "has been out of reach for more than 1 s: Connection refused" in str(source.error)


def test_a_connection_that_is_cut_again_and_again_loses_nothing(
    harness: Harness,
    configured: Configure,
    start: Start,
    queue: str,
    kafka: EmbeddedKafka,
    proxied: Callable[[int], Proxy],
) -> None:
    proxy = proxied(harness.port)
    proxy.piece_bytes, proxy.pause_seconds = 20_000, 0.002
    config = configured(harness.settings(queue, proxy.port))
    harness.send(queue, numbered(6000))

    source = start(config)
    for cuts in range(1, 4):
        until(lambda: source.count("received") >= 400 * cuts)  # noqa: B023 # used before the next round
        proxy.cut()
        until(lambda: source.count("reconnects") >= cuts)  # noqa: B023 # used before the next round
    until(lambda: set(numbers(kafka, config.journal.topic)) == set(range(6000)))
    source.stop()

    assert source.count("journaled") == len(numbers(kafka, config.journal.topic))


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
    assert set(numbers(kafka, config.journal.topic)) == set(range(3100))


def test_a_broker_that_falls_silent_is_left_for_a_new_connection(
    harness: Harness,
    configured: Configure,
    start: Start,
    queue: str,
    kafka: EmbeddedKafka,
    proxied: Callable[[int], Proxy],
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

    assert sorted(numbers(kafka, config.journal.topic)) == list(range(5))


def test_a_slow_peer_is_waited_for_byte_by_byte(
    harness: Harness,
    configured: Configure,
    start: Start,
    queue: str,
    kafka: EmbeddedKafka,
    proxied: Callable[[int], Proxy],
) -> None:
    proxy = proxied(harness.port)
    proxy.piece_bytes, proxy.pause_seconds = 1, 0.0005
    config = configured(harness.settings(queue, proxy.port))
    harness.send(queue, numbered(10))

    source = start(config)
    source.acknowledges(10)

    assert sorted(numbers(kafka, config.journal.topic)) == list(range(10))
    assert source.count("reconnects") == 0


def test_a_journal_that_stands_still_stops_the_reading_but_not_the_connection(
    harness: Harness, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka
) -> None:
    small = {"journal.max-message-bytes": "64KiB", "kafka.producer.buffer.memory": "4194304"}
    config = configured(harness.settings(queue) | small)
    harness.send(queue, numbered(20_000, size=2000))
    assert kafka.pid is not None

    before = resident_bytes()
    os.kill(kafka.pid, signal.SIGSTOP)
    try:
        source = start(config)
        # Longer than the broker waits for heart-beats.
        until(lambda: source.status.current.state is State.DEGRADED and "Kafka" in source.status.current.detail)
        read_until_then = source.count("received")
        time.sleep(4)  # what is tested is that nothing happens in this time
        assert source.count("received") == read_until_then < 5000
        grown = resident_bytes() - before
    finally:
        os.kill(kafka.pid, signal.SIGCONT)
    source.acknowledges(20_000, 60)
    source.stop()

    assert source.count("reconnects") == 0
    assert grown < 32 * 1024 * 1024
    assert sorted(numbers(kafka, config.journal.topic)) == list(range(20_000))


def test_it_stops_in_time_while_the_journal_stands_still_and_nothing_is_lost(
    harness: Harness, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka
) -> None:
    config = configured(harness.settings(queue))
    harness.send(queue, numbered(50))
    assert kafka.pid is not None

    os.kill(kafka.pid, signal.SIGSTOP)
    try:
        source = start(config)
        until(lambda: source.connected)
        source.stop(25)
    finally:
        os.kill(kafka.pid, signal.SIGCONT)
    assert source.error is None
    assert harness.waiting(queue) == 50

    start(config).acknowledges(50)
    assert set(numbers(kafka, config.journal.topic)) == set(range(50))


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
