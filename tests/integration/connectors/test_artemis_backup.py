"""An Artemis with a backup that shares its store: sources and sinks follow to the one that serves, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.embedded.ports import accepts
from tests.integration.connectors import sinks
from tests.integration.connectors.amqp_harness import AmqpHarness
from tests.integration.connectors.amqp_jms import QpidClient
from tests.integration.connectors.changed_artemis import ArtemisPair
from tests.integration.connectors.running import numbered, numbers
from tests.integration.connectors.stomp_harness import StompHarness
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from engine.embedded import EmbeddedArtemis, EmbeddedKafka
    from tests.integration.connectors.conftest import Configure, Start, StartSink
    from tests.integration.connectors.harness import Outgoing

MESSAGES, MORE = 8_000, 500


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArtemisPair]:
    made = ArtemisPair(tmp_path_factory.mktemp("pair"))
    try:
        made.start()
        yield made
    finally:
        made.stop()


def send(member: EmbeddedArtemis, queue: str, messages: Sequence[Outgoing]) -> None:
    """Sends as a JMS application: its messages have ids, by which those that come again are known."""
    client = QpidClient(member.amqp_url)
    AmqpHarness(member, client).send(queue, messages)
    client.close()


def keys(pair: ArtemisPair, kind: str) -> Mapping[str, str]:
    url, backup = (getattr(each, f"{kind}_url") for each in (pair.primary, pair.backup))
    return {".type": kind, ".url": url, ".backup-urls": backup, ".heartbeat": "1s"}


def fail_over(pair: ArtemisPair) -> StompHarness:
    """Kills the broker; returns what is known of its backup, once that serves."""
    assert not accepts(pair.backup.port)
    pair.primary.kill()
    return serving(pair.backup)


def fail_back(pair: ArtemisPair) -> StompHarness:
    """Starts the broker again, which takes over from its backup."""
    pair.primary.start()
    until(lambda: not accepts(pair.backup.port), what="the end of the backup's service")
    return serving(pair.primary)


def serving(member: EmbeddedArtemis) -> StompHarness:
    harness = StompHarness(member)
    until(lambda: accepts(harness.port), what="the start of service")
    return harness


@pytest.mark.parametrize("kind", ["stomp", pytest.param("amqp", marks=pytest.mark.further_cases)])
def test_a_source_follows_to_the_backup_and_back(
    pair: ArtemisPair,
    configured: Configure,
    start: Start,
    kafka: EmbeddedKafka,
    queue: str,
    kind: str,
) -> None:
    StompHarness(pair.primary).create(queue)
    send(pair.primary, queue, numbered(MESSAGES, 200))
    config = configured({**keys(pair, kind), ".destinations": f"queue:{queue}"})
    source = start(config)
    until(lambda: source.count("acknowledged") > 0)
    assert source.count("acknowledged") < MESSAGES

    backup = fail_over(pair)
    send(pair.backup, queue, numbered(MORE, begin=MESSAGES))
    until(lambda: backup.waiting(queue) == 0, 120, "the messages that the backup has")

    back = fail_back(pair)
    send(pair.primary, queue, numbered(MORE, begin=MESSAGES + MORE))
    until(lambda: back.waiting(queue) == 0, 120, "the messages that the broker has again")
    source.stop()
    assert source.error is None
    assert sorted(numbers(kafka.bootstrap, config.journal.topic)) == list(range(MESSAGES + 2 * MORE))


@pytest.mark.parametrize("kind", [pytest.param("stomp", marks=pytest.mark.further_cases), "amqp"])
def test_a_sink_follows_to_the_backup_and_sends_nothing_twice(
    pair: ArtemisPair, tmp_path: Path, kafka: EmbeddedKafka, start_sink: StartSink, queue: str, kind: str
) -> None:
    StompHarness(pair.primary).create(queue)
    config = sinks.configure(tmp_path, kafka.bootstrap, queue, keys(pair, kind))
    router = sinks.RouterStandIn(config)
    router.give(f"queue/{queue}", sinks.numbered(MESSAGES, size=200))
    sink = start_sink(config)
    sink.delivers(1)
    assert sink.count("delivered_messages") < MESSAGES

    fail_over(pair)
    sink.delivers(MESSAGES)

    back = fail_back(pair)
    router.give(f"queue/{queue}", sinks.numbered(MORE, begin=MESSAGES))
    sink.delivers(MESSAGES + MORE)
    sink.stop()
    found = sinks.numbers(sinks.StompSinkHarness(back).arrived(queue, MESSAGES + MORE))
    assert sorted(found) == list(range(MESSAGES + MORE))
    assert sinks.in_order(found)
