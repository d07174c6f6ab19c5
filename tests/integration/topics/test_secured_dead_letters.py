"""Dead letters on a Kafka that grants little: what is lacking is told, and what can be known is known."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AclOperation

from engine.dead_letters.replay import replay
from engine.dead_letters.store import DeadLetterStore
from engine.dead_letters.watch import DeadLetterWatch
from engine.errors import HardFailureError
from engine.kafka.clients import KafkaClients
from engine.kafka.reader import KafkaTopicReader
from tests.integration.topics.test_secured_kafka import LOGIN, configure
from tests.topic_records import ordered_producer
from tests.waiting import patience

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.telemetry.status import DeadLetterCounts
    from routes.model import Config
    from tests.integration.topics.conftest import SecuredKafka


def dead_letters(kafka: SecuredKafka, *allowed: AclOperation) -> Config:
    """A configuration whose dead-letter topic has one dead letter and grants that much."""
    topic = kafka.create(f"dead-{uuid.uuid4().hex[:8]}", *allowed)
    producer = ordered_producer(kafka.bootstrap)
    producer.produce(topic, b"body", headers=[("jmsbridge.reason", b"unmatched")])
    assert producer.flush(30) == 0
    return configure(kafka.sasl, "t", *LOGIN, f"routing.dead-letter-topic={topic}")


def wait(watch: DeadLetterWatch, condition: Callable[[DeadLetterCounts], bool]) -> DeadLetterCounts:
    deadline = time.monotonic() + patience(30)
    while (census := watch.census()) is None or not condition(census):
        assert time.monotonic() < deadline, census
        time.sleep(0.1)
    return census


def test_what_may_not_be_read_is_not_counted_until_it_may(secured_kafka: SecuredKafka) -> None:
    config = dead_letters(secured_kafka, AclOperation.WRITE)
    topic, audit, quarantine = config.letter_topics
    with DeadLetterWatch(lambda: DeadLetterStore.of(config), lambda: True) as watch:
        census = wait(watch, lambda found: bool(found.trouble))
        assert (census.reachable, census.depth) == (True, None), census.trouble
        assert f"topic '{audit}' (dead letters): does not exist, or the bridge is not authorised" in census.trouble
        for name in (audit, quarantine):
            secured_kafka.allow(name, AclOperation.READ)
        refused = f"topic '{topic}': not authorised to read the topic; grant READ on it"
        assert wait(watch, lambda found: found.trouble == refused).depth is None
        secured_kafka.allow(topic, AclOperation.READ)
        assert wait(watch, lambda found: found.depth == 1).trouble == ""


def test_a_topic_that_may_not_be_written_is_out_of_reach_for_dead_letters(secured_kafka: SecuredKafka) -> None:
    config = dead_letters(secured_kafka, AclOperation.READ)
    with DeadLetterWatch(lambda: DeadLetterStore.of(config), lambda: True) as watch:
        census = wait(watch, lambda found: bool(found.trouble))
    assert not census.reachable
    assert "not authorised to write it; grant WRITE on it" in census.trouble


def test_dead_letters_are_read_without_any_right_on_a_group(secured_kafka: SecuredKafka) -> None:
    config = dead_letters(secured_kafka, AclOperation.READ)
    topic = config.letter_topics[0]
    with KafkaTopicReader(KafkaClients(config.kafka_access), topic) as reader:
        assert [located.record.value for located in reader.present()] == [b"body"]


def test_who_may_not_create_the_audit_is_told_so_in_a_line(secured_kafka: SecuredKafka) -> None:
    config = dead_letters(secured_kafka, AclOperation.READ, AclOperation.WRITE)
    audit = config.letter_topics[1]
    secured_kafka.allow(audit, AclOperation.READ)
    with pytest.raises(HardFailureError) as raised:
        list(replay(DeadLetterStore.of(config), None))
    assert f"topic '{audit}' (the audit of dead letters)" in str(raised.value)
    assert "grant CREATE on it" in str(raised.value)
    assert "\n" not in str(raised.value)
