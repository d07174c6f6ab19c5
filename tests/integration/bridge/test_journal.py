"""The journal's producing side against a real Kafka: confirmation, size limits, a full buffer, a Kafka that is away."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import TYPE_CHECKING

import pytest

from engine.errors import HardFailureError, UnreachableError
from engine.kafka.clients import KafkaClients
from engine.kafka.journal import Journal, JournalError, JournalTooLargeError
from engine.kafka.topics import BridgeTopics
from engine.kafka.transactions import TransactionalJournal
from engine.message import Message
from engine.tracing_section import TracingConfig
from routes.properties import Property
from tests.integration.connectors.running import configure, read, visible
from tests.processes import pause
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path
    from typing import Any

    from engine.embedded import EmbeddedKafka
    from routes.model import Config
    from tests.conftest import TopicFactory

    Configure = Callable[..., Config]

SOURCE = {".url": "stomp://127.0.0.1:1", ".destinations": "queue:x"}
LIMIT = 64 * 1024


@pytest.fixture
def configured(kafka: EmbeddedKafka, tmp_path: Path, request: pytest.FixtureRequest) -> Configure:
    """Makes a configuration with a journal of its own."""

    def make(more: Mapping[str, str] | None = None, topic: str = "", bootstrap: str = kafka.bootstrap) -> Config:
        name = topic or f"journal-{time.time_ns()}"
        config = configure(tmp_path, bootstrap, name, {**SOURCE, **(more or {})})
        if not topic:
            BridgeTopics(config).ensure_journal()
        return config

    return make


def journal_of(config: Config, *arguments: Any, **more: Any) -> Journal:
    return Journal(
        KafkaClients(config.kafka_access), config.journal.topic, config.section(TracingConfig), *arguments, **more
    )


class Switch:
    """Makes Kafka stand still, and lets it go on."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    def off(self) -> None:
        pause(self._pid)

    def on(self) -> None:
        os.kill(self._pid, signal.SIGCONT)


@pytest.fixture
def switch(kafka: EmbeddedKafka) -> Iterator[Switch]:
    assert kafka.pid is not None
    switch = Switch(kafka.pid)
    yield switch
    switch.on()


class Outcomes:
    """Gathers what the journal says of each message."""

    def __init__(self) -> None:
        self.told: list[Exception | None] = []

    def __call__(self, error: Exception | None) -> None:
        self.told.append(error)


def text(body: str, key: str | None = None) -> Message:
    return Message(body.encode(), headers={} if key is None else {"JMSCorrelationID": key})


def murmur2(data: bytes) -> int:
    """Kafka's hash of a key, from the description of MurmurHash2 with Kafka's seed."""
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    h = (0x9747B28C ^ len(data)) & mask
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * m & mask
        k = (k ^ (k >> 24)) * m & mask
        h = (h * m & mask) ^ k
    if rest := data[whole:]:
        h = (h ^ int.from_bytes(rest, "little")) * m & mask
    h = (h ^ (h >> 13)) * m & mask
    return (h ^ (h >> 15)) & 0x7FFFFFFF


def test_each_message_is_confirmed_and_is_in_the_topic_as_its_record(
    configured: Configure, kafka: EmbeddedKafka
) -> None:
    config = configured()
    journal, outcomes = journal_of(config), Outcomes()
    messages = [
        Message(b"body", headers={"JMSMessageID": f"ID:{n}"}, properties={"é x": Property("ü")}, source="s")
        for n in range(50)
    ]

    before = time.time() * 1000
    for message in messages:
        assert journal.append(message, outcomes)
    assert journal.flush(10)
    journal.close()

    assert outcomes.told == [None] * 50
    found = read(kafka.bootstrap, config.journal.topic)
    assert sorted((f.record for f in found), key=repr) == sorted((m.to_record() for m in messages), key=repr)
    assert all(before - 1 <= located.timestamp_ms <= time.time() * 1000 + 1 for located in found)


def test_a_key_goes_to_the_partition_that_java_clients_would_choose(
    configured: Configure, kafka: EmbeddedKafka
) -> None:
    config = configured()
    journal = journal_of(config)
    for n in range(200):
        journal.append(text("x", f"key-{n}-ä"), Outcomes())
    journal.flush(10)
    journal.close()

    for located in read(kafka.bootstrap, config.journal.topic):
        assert located.record.key is not None
        assert located.partition == murmur2(located.record.key) % 2


def test_a_message_over_the_limit_is_refused_by_itself(configured: Configure, kafka: EmbeddedKafka) -> None:
    config = configured({"journal.max-message-bytes": "64KiB"})
    journal, outcomes = journal_of(config), Outcomes()
    rest = text("").to_record().size

    journal.append(text("x" * (LIMIT - rest)), outcomes)
    with pytest.raises(JournalTooLargeError) as caught:
        journal.append(text("x" * (LIMIT - rest + 1)), outcomes)
    journal.append(text("after"), outcomes)
    journal.flush(10)
    journal.close()

    assert str(caught.value) == f"{LIMIT + 1} bytes, the journal takes {LIMIT}"
    assert outcomes.told == [None, None]


def test_a_message_of_many_small_headers_fits_or_is_refused_but_never_fails_in_kafka(
    configured: Configure, kafka: EmbeddedKafka
) -> None:
    config = configured({"journal.max-message-bytes": "64KiB"})
    journal, outcomes = journal_of(config), Outcomes()
    refused = 0

    for count in (300, 1000, 4000, 8000, 9000):
        many = Message(b"", properties={f"{n}": Property("") for n in range(count)})
        try:
            journal.append(many, outcomes)
        except JournalTooLargeError:
            refused += 1
    journal.flush(10)
    journal.close()

    assert outcomes.told == [None] * (5 - refused)
    assert 0 < refused < 5


def test_large_messages_next_to_each_other_do_not_make_a_batch_that_is_too_large(
    configured: Configure, kafka: EmbeddedKafka
) -> None:
    config = configured({"journal.max-message-bytes": "64KiB"})
    journal, outcomes = journal_of(config), Outcomes()

    for n in range(200):
        journal.append(text("x" * (1000 + 300 * n), "one key"), outcomes)
    journal.flush(10)
    journal.close()

    assert outcomes.told == [None] * 200


def test_a_full_buffer_is_waited_for(configured: Configure, kafka: EmbeddedKafka, switch: Switch) -> None:
    config = configured({"journal.max-message-bytes": "64KiB", "kafka.producer.buffer.memory": "200000"})
    waits: list[float] = []
    journal, outcomes = journal_of(config, while_full=lambda: waits.append(time.monotonic())), Outcomes()
    switch.off()

    def go_on() -> None:
        until(lambda: len(waits) > 3)
        switch.on()

    helper = threading.Thread(target=go_on)
    helper.start()
    for n in range(100):
        assert journal.append(text("x" * 10_000, f"{n}"), outcomes)
    helper.join()
    assert journal.stalled_seconds < 30
    assert journal.flush(20)
    journal.close()

    assert outcomes.told == [None] * 100
    assert len(read(kafka.bootstrap, config.journal.topic)) == 100


def test_waiting_for_room_ends_when_it_is_asked_to_stop(
    configured: Configure, kafka: EmbeddedKafka, switch: Switch
) -> None:
    config = configured({"journal.max-message-bytes": "64KiB", "kafka.producer.buffer.memory": "200000"})
    stop = threading.Event()
    journal, outcomes = journal_of(config, stop, while_full=stop.set), Outcomes()
    switch.off()

    taken = [journal.append(text("x" * 10_000), outcomes) for _ in range(100)]
    switch.on()
    journal.close()

    assert taken[0] is True
    assert taken[-1] is False
    assert len(outcomes.told) == sum(taken)


@pytest.mark.kills
def test_a_kafka_that_is_killed_and_comes_back_gets_each_message_once_and_in_order(
    configured: Configure, kafka: EmbeddedKafka
) -> None:
    config = configured()
    journal, outcomes = journal_of(config), Outcomes()
    for n in range(1000):
        journal.append(text(str(n), "one key"), outcomes)
    assert kafka.pid is not None

    os.kill(kafka.pid, signal.SIGKILL)
    kafka.stop()
    for n in range(1000, 2000):
        journal.append(text(str(n), "one key"), outcomes)
    kafka.start()
    assert journal.flush(60)
    journal.close()

    assert outcomes.told == [None] * 2000
    assert [int(located.record.value or b"") for located in read(kafka.bootstrap, config.journal.topic)] == list(
        range(2000)
    )


def test_a_kafka_that_stays_away_longer_than_allowed_is_an_error(configured: Configure) -> None:
    config = configured({"router.outage-timeout": "1s"}, topic="any", bootstrap="127.0.0.1:1")
    journal = journal_of(config)
    journal.append(text("x"), Outcomes())

    with pytest.raises(UnreachableError) as caught:
        until(lambda: journal.poll(0.1))
    journal.close()

    assert str(caught.value) == (
        "Kafka at 127.0.0.1:1 has not been usable for 1 seconds (router.outage-timeout). "
        "Start the bridge again when Kafka is back: nothing is lost"
    )


def test_a_topic_that_is_missing_is_a_hard_failure(configured: Configure, kafka: EmbeddedKafka) -> None:
    journal, outcomes = journal_of(configured(topic="not-there")), Outcomes()
    journal.append(text("x"), outcomes)

    until(lambda: journal.flush(1))
    journal.close()

    (error,) = outcomes.told
    assert isinstance(error, HardFailureError)
    assert str(error).startswith(
        f"Kafka at {kafka.bootstrap} refuses topic 'not-there': there is no such topic; create it, or start the whole "
        "bridge, which does ("
    )


def test_a_topic_that_takes_less_than_configured_is_a_hard_failure(
    configured: Configure, kafka: EmbeddedKafka, topic: TopicFactory
) -> None:
    small = topic("small", config={"max.message.bytes": "1000"})
    journal, outcomes = journal_of(configured(topic=small)), Outcomes()

    journal.append(text("x" * 2000), outcomes)
    journal.flush(10)
    journal.close()

    (error,) = outcomes.told
    assert isinstance(error, HardFailureError)
    assert "its max.message.bytes is less than what the bridge may write" in str(error)


def test_closing_tells_of_each_message_that_did_not_get_in(configured: Configure) -> None:
    journal, outcomes = journal_of(configured(topic="any", bootstrap="127.0.0.1:1")), Outcomes()
    for _ in range(3):
        journal.append(text("x"), outcomes)

    journal.close()

    assert [type(error) for error in outcomes.told] == [JournalError] * 3


@pytest.mark.parametrize("call", ["poll", "flush", "commit"])
def test_a_transaction_that_another_has_ended_is_told_and_the_next_one_works(configured: Configure, call: str) -> None:
    config = configured()
    message = Message(b"x" * 100, headers={"JMSMessageID": "ID:1", "JMSDestination": "queue:x"})
    first = TransactionalJournal(
        KafkaClients(config.kafka_access),
        config.journal.topic,
        config.section(TracingConfig),
        "b.owner",
        threading.Event(),
    )
    assert first.append(message, lambda _: None)
    assert first.flush(30)
    second = TransactionalJournal(
        KafkaClients(config.kafka_access),
        config.journal.topic,
        config.section(TracingConfig),
        "b.owner",
        threading.Event(),
    )
    calls = {"poll": lambda: first.poll(0.1), "flush": lambda: first.flush(1), "commit": first.commit}

    def go_on() -> None:
        for _ in range(2000):
            first.append(message, lambda _: None)
        for _ in range(100):
            calls[call]()

    with pytest.raises(JournalError):
        go_on()
    first.close()
    assert second.append(message, lambda _: None)
    second.commit()
    second.close()
    assert len(visible(config)) == 1
