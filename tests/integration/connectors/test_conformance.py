"""What every source must do, whatever it connects to. A connector joins with its harness, see `conftest`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import HardFailureError
from engine.kafka.topics import BridgeTopics
from engine.message import BodyType
from engine.telemetry.status import State
from tests.integration.connectors.harness import Outgoing
from tests.integration.connectors.running import bodies, configure, numbered, numbers, read
from tests.integration.connectors.systems import delivery_of_sources
from tests.waiting import until

if TYPE_CHECKING:
    from engine.embedded import EmbeddedKafka
    from tests.conftest import TopicFactory
    from tests.integration.connectors.conftest import Configure, Proxied, Start
    from tests.integration.connectors.harness import Harness


def test_it_connects_takes_what_is_there_and_leaves_nothing_behind(
    harness: Harness, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka
) -> None:
    config = configured(harness.settings(queue))
    harness.send(queue, numbered(10))

    source = start(config)
    source.acknowledges(10)
    assert source.connected
    until(lambda: source.status.current.state is State.READY, 60, "ready")
    source.stop()

    assert source.error is None
    assert not source.connected
    assert harness.waiting(queue) == 0
    assert sorted(numbers(kafka.bootstrap, config.journal.topic)) == list(range(10))
    assert source.count("received") == source.count("journaled") == source.count("acknowledged") == 10


def test_what_was_taken_once_does_not_come_again_after_a_clean_stop(
    harness: Harness,
    configured: Configure,
    start: Start,
    queue: str,
    kafka: EmbeddedKafka,
    proxied: Proxied,
) -> None:
    proxy = proxied(harness.port)
    proxy.piece_bytes, proxy.pause_seconds = 20_000, 0.03
    config = configured(harness.settings(queue, proxy.port))
    harness.send(queue, numbered(2500, size=1000))

    taken = 0
    for _ in range(2):
        source = start(config)
        source.acknowledges(1)
        source.stop()
        assert source.error is None
        # What comes again is looked for in the journal first; whoever wants to stop does not wait for that.
        assert source.count("received") >= source.count("acknowledged")
        taken += source.count("acknowledged")
    assert taken + harness.waiting(queue) == 2500
    assert taken < 2500
    proxy.pause_seconds = 0
    last = start(config)
    last.acknowledges(2500 - taken)

    assert sorted(numbers(kafka.bootstrap, config.journal.topic)) == list(range(2500))


def test_messages_of_one_key_keep_their_order_and_their_partition(
    harness: Harness, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka
) -> None:
    config = configured(harness.settings(queue))
    fields = {n: {"JMSCorrelationID": f"key-{n % 7}"} for n in range(500)}
    harness.send(queue, [Outgoing(str(n).encode(), fields=fields[n]) for n in range(500)])

    start(config).acknowledges(500)

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
    many = {f"property_{n}": str(n) for n in range(harness.most_properties)}
    harness.send(queue, [Outgoing(fields=fields, properties={**harness.odd, **many})])

    start(config).acknowledges(1)

    (located,) = read(kafka.bootstrap, config.journal.topic)
    message = located.message
    # Names that begin with JMS_ are the provider's, which may tell more of a message than its sender has.
    sent = {name: value.text for name, value in message.properties.items() if not name.startswith("JMS_")}
    assert sent == {**harness.odd, **many}
    expected = {**fields, "JMSReplyTo": "queue:replies"} if "JMSReplyTo" in fields else fields
    assert {name: message.headers[name] for name in expected} == expected
    assert message.headers["JMSDestination"] == f"{harness.kind}:{queue}"
    assert message.headers["JMSMessageID"].startswith("ID:")
    assert message.headers["JMSRedelivered"] == "false"
    assert message.headers.get("JMSDeliveryMode") == harness.delivery_mode
    assert message.source == "src"
    assert abs(located.timestamp_ms - time.time() * 1000) < 60_000


BODIES = {
    "empty": b"",
    "unicode": "hällo ☃\n\r\n\t".encode(),
    "nul": b"with\0nul\0",
    "looks like a frame": b"MESSAGE\na:b\n\nc\0\n\nMESSAGE\n\n\0",
    "a byte that is not a text": b"\xff",
    "every byte": bytes(range(256)),
    "1 MiB of text": b"x" * 1024 * 1024,
    "1 MiB": bytes(n % 256 for n in range(1024 * 1024)),
}
TEXTS = ("empty", "unicode", "1 MiB of text")


def test_bodies_arrive_as_they_were_sent(
    harness: Harness, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka
) -> None:
    config = configured(harness.settings(queue))
    harness.send(queue, [Outgoing(body, text=name in TEXTS) for name, body in BODIES.items()])

    start(config).acknowledges(len(BODIES))

    found = read(kafka.bootstrap, config.journal.topic)
    assert len(found) == len(BODIES)
    types = {located.record.value: located.message.body_type for located in found}
    expected = {name: BodyType.TEXT if name in TEXTS else BodyType.BYTES for name in BODIES}
    assert {name: types.get(body) for name, body in BODIES.items()} == expected


@delivery_of_sources("stomp")
def test_a_message_too_large_is_set_aside_by_the_default_policy_and_stops_nothing(
    harness: Harness, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka
) -> None:
    config = configured(harness.settings(queue) | {"journal.max-message-bytes": "64KiB"})
    harness.send(queue, [Outgoing(b"small"), Outgoing(b"x" * 100_000), Outgoing(b"after")])

    source = start(config)
    source.acknowledges(3)
    source.stop()

    assert source.error is None
    assert sorted(bodies(kafka.bootstrap, config.journal.topic)) == [b"after", b"small"]
    (letter,) = read(kafka.bootstrap, config.letter_topic)
    assert letter.record.header("jmsbridge.reason") == "too-large"
    assert harness.waiting(queue) == 0


def test_messages_too_large_become_dead_letters_once_and_the_others_go_on(
    harness: Harness, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka, topic: TopicFactory
) -> None:
    sizes = [size for size in (70_000, 20 * 1024 * 1024) if size <= harness.largest_bytes]
    dead = topic("dead")
    policies = {"routing.on-soft-failure": "dead-letter", "routing.dead-letter-topic": dead}
    config = configured(harness.settings(queue) | {"journal.max-message-bytes": "64KiB"} | policies)
    large = [Outgoing(b"x" * size, text=False, properties={"region": "emea"}) for size in sizes]
    harness.send(queue, [Outgoing(b"small"), *large, Outgoing(b"after")])

    source = start(config)
    source.acknowledges(2 + len(sizes))
    source.stop()

    assert source.error is None
    assert sorted(bodies(kafka.bootstrap, config.journal.topic)) == [b"after", b"small"]
    assert harness.waiting(queue) == 0
    assert source.count("rejected", reason="too-large") == len(sizes)
    assert source.count("journaled") == 2
    letters = [located.record for located in read(kafka.bootstrap, dead)]
    assert len(letters) == len(sizes)
    for letter in letters:
        assert letter.value == b"x" * 65536
        assert letter.header("jms.region") == "emea"
        assert letter.header("jmsbridge.reason") == "too-large"
    truncated = sorted(int(letter.header("jmsbridge.truncated") or 0) for letter in letters)
    assert all(told >= size for told, size in zip(truncated, sizes, strict=True))


@delivery_of_sources("stomp")
def test_a_message_too_large_is_skipped_once_and_the_others_go_on(
    harness: Harness, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka, topic: TopicFactory
) -> None:
    dead = topic("dead")
    policies = {"routing.on-soft-failure": "skip", "routing.dead-letter-topic": dead}
    config = configured(harness.settings(queue) | {"journal.max-message-bytes": "64KiB"} | policies)
    harness.send(queue, [Outgoing(b"small"), Outgoing(b"x" * 70_000), Outgoing(b"after")])

    source = start(config)
    source.acknowledges(3)
    source.stop()

    assert source.error is None
    assert sorted(bodies(kafka.bootstrap, config.journal.topic)) == [b"after", b"small"]
    assert harness.waiting(queue) == 0
    assert source.count("rejected", reason="too-large") == 1
    assert source.count("journaled") == 2
    assert read(kafka.bootstrap, dead) == []


@delivery_of_sources("stomp")
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

    BridgeTopics(config).ensure_journal()
    start(config).acknowledges(5)
    assert sorted(numbers(kafka.bootstrap, config.journal.topic)) == list(range(5))
