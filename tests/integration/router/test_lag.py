"""How far a router is behind, with a journal in a real Kafka and no router."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import Producer

from engine.kafka.clients import KafkaClients
from engine.kafka.offsets import KafkaOffsets
from engine.router import lag
from engine.router.lag import LagSampler
from routes.config import loads
from tests.waiting import until

if TYPE_CHECKING:
    import pytest

    from engine.embedded import EmbeddedKafka
    from tests.conftest import TopicFactory


def test_what_a_transaction_hides_that_nobody_ends_is_behind(
    kafka: EmbeddedKafka, topic: TopicFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lag, "_HIDDEN_SECONDS", 2.0)
    journal = topic("journal")
    servers = {"bootstrap.servers": kafka.bootstrap}
    config = loads(
        f"bridge.id=b1\njournal.topic={journal}\nkafka.bootstrap.servers={kafka.bootstrap}\n"
        "source.s.type=stomp\nsource.s.destinations=queue:a\nroutes.r.in.include=TRUE\nroutes.r.out.topic=t\n"
    )
    producer = Producer({**servers, "transactional.id": journal})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(journal, b"in the transaction")
    producer.flush()
    other = Producer(servers)
    for _ in range(3):
        other.produce(journal, b"in none")
    other.flush()
    sampler = LagSampler(
        KafkaOffsets(KafkaClients(config.kafka_access)),
        config.kafka_access,
        config.journal.topic,
        [],
        {0: 0},
        interval_seconds=0.2,
    )
    try:
        until(lambda: sampler.partitions == 1)
        assert sampler.lag({0: 0}, {}).total == 0
        until(lambda: sampler.hidden == {0: 0})
        assert sampler.lag({0: 0}, {}).records == {0: 4}
        assert sampler.lag({0: 0}, {}).seconds > 2

        producer.commit_transaction(30)
        until(lambda: sampler.hidden == {})
        # With the marker of the transaction.
        until(lambda: sampler.lag({0: 0}, {}).records == {0: 5})
        assert sampler.lag({0: 5}, {}).total == 0
    finally:
        sampler.close()
