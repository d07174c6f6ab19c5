"""The audit of actions in a real Kafka."""

from __future__ import annotations

from dataclasses import replace

from engine.embedded import EmbeddedKafka
from engine.kafka.clients import KafkaClients
from engine.kafka.cluster import Cluster
from engine.looks.action import ActionQuestion, AuditedAction
from engine.looks.log import LookLog, LookTopic, last_actions
from routes.config import loads
from tests.conftest import TopicFactory
from tests.unit.page.bridge import CONFIGURATION


def test_actions_are_kept_with_their_results_and_found_again(kafka: EmbeddedKafka, topic: TopicFactory) -> None:
    journal = topic("journal")
    config = loads(CONFIGURATION.replace("127.0.0.1:1\n", f"{kafka.bootstrap}\njournal.topic={journal}\n", 1))
    where = LookTopic.of_actions(config)
    assert last_actions(where, ActionQuestion(), 5, 10.0) == []
    log = LookLog()
    begun = AuditedAction("2026-11-28T12:00:00.000Z", "anna", "operator", "10.0.0.1", "1", "pause", "source:jms")
    done = replace(begun, time="2026-11-28T12:00:01.000Z", result="done")
    later = replace(begun, id="2", user="olga", action="send", target="queue:orders")
    for entry in (begun, done, later):
        log.note(where, entry)
    first = replace(begun, result="done")
    assert last_actions(where, ActionQuestion(), 5, 10.0) == [first, later]
    assert last_actions(where, ActionQuestion(), 1, 10.0) == [later]
    assert last_actions(where, ActionQuestion(user="ANN"), 5, 10.0) == [first]
    assert last_actions(where, ActionQuestion(action="send", target="orders"), 5, 10.0) == [later]
    settings = Cluster(KafkaClients(config.kafka_access), 10.0).settings([where.name])[where.name]
    assert (where.name, settings["retention.ms"]) == (f"{journal}.actions", str(90 * 24 * 3_600_000))
