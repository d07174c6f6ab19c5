"""What a start would find of its topics, on a Kafka that asks who is there; and that looking makes none."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from confluent_kafka.admin import AclOperation, AdminClient

from engine.doctor.checks import Severity
from engine.doctor.kafka import audit_findings, check_kafka
from engine.kafka.clients import KafkaClients
from engine.kafka.cluster import Cluster
from engine.kafka.topics import BridgeTopics, audit_problems
from routes.config import loads
from routes.targets import actions_topic, audit_topic, looks_topic

if TYPE_CHECKING:
    from engine.embedded import EmbeddedKafka
    from routes.model import Config
    from tests.integration.topics.conftest import SecuredKafka

LOGIN = """\
kafka.security.protocol=SASL_PLAINTEXT
kafka.sasl.mechanism=PLAIN
kafka.sasl.username=bridge
kafka.sasl.password=bridge-secret
"""


def fresh(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


def configure(kafka: SecuredKafka, destination: str, journal: str, login: str = LOGIN) -> Config:
    return loads(
        f"bridge.id=b\nkafka.bootstrap.servers={kafka.sasl}\njournal.topic={journal}\n{login}"
        f"routes.r.in.include=TRUE\nroutes.r.out.topic={destination}\n"
    )


def topics(kafka: SecuredKafka) -> set[str]:
    return set(AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0}).list_topics(timeout=30).topics)


def test_who_may_not_create_the_journal_is_told_and_nothing_is_made(secured_kafka: SecuredKafka) -> None:
    destination = secured_kafka.create(fresh("orders"), AclOperation.WRITE)
    config = configure(secured_kafka, destination, fresh("journal"))
    before = topics(secured_kafka)

    found = BridgeTopics(config).survey(Cluster(KafkaClients(config.kafka_access), 30))

    assert found.there == (destination,)
    assert found.to_make == ()
    assert {problem.topic for problem in found.problems} == {
        config.journal.topic,
        config.journal.state_topic,
        config.letter_topic,
    }
    assert topics(secured_kafka) == before


def test_who_may_create_and_not_write_is_told_what_to_grant(secured_kafka: SecuredKafka) -> None:
    journal = fresh("journal")
    destination = secured_kafka.create(fresh("orders"), AclOperation.READ)
    config = configure(secured_kafka, destination, journal)
    own = (journal, config.journal.state_topic, config.letter_topic)
    for topic in own:
        secured_kafka.allow(topic, AclOperation.CREATE, AclOperation.DESCRIBE, AclOperation.READ, AclOperation.WRITE)

    found = BridgeTopics(config).survey(Cluster(KafkaClients(config.kafka_access), 30))

    assert set(found.to_make) == set(own)
    (problem,) = found.problems
    assert (problem.topic, problem.what) == (destination, "not authorised to write it")
    assert journal not in topics(secured_kafka)


def test_an_audit_that_cannot_be_written_is_a_warning_with_what_to_grant(secured_kafka: SecuredKafka) -> None:
    journal = fresh("journal")
    config = configure(secured_kafka, secured_kafka.create(fresh("orders"), AclOperation.WRITE), journal)
    secured_kafka.allow(audit_topic(config.letter_topic), AclOperation.CREATE, AclOperation.DESCRIBE)

    cluster = Cluster(KafkaClients(config.kafka_access), 30)
    problems = audit_problems(cluster, config.journal, config.letter_topic, -1)

    for found, topic in zip(audit_findings(problems), (actions_topic(journal), looks_topic(journal)), strict=True):
        assert found.state is Severity.WARNING
        assert topic in found.found
        assert found.remedy == "create it, and grant WRITE on it to the bridge's principal"


def test_a_login_that_kafka_refuses_is_one_finding(secured_kafka: SecuredKafka) -> None:
    wrong = LOGIN.replace("bridge-secret", "guessed-wrong")
    config = configure(secured_kafka, fresh("orders"), fresh("journal"), wrong)
    (found,) = check_kafka(config, 20)
    assert (found.state, found.exit_code) == (Severity.FAILED, 4)
    assert "refuses the login" in found.found
    assert found.remedy == "check kafka.sasl.* and kafka.security.protocol"
    assert "guessed-wrong" not in found.found


def test_for_how_long_offsets_are_kept_is_known_of_the_embedded_kafka(kafka: EmbeddedKafka) -> None:
    route = "routes.r.in.include=TRUE\nroutes.r.out.topic=x\n"
    config = loads(f"bridge.id=b\nkafka.bootstrap.servers={kafka.bootstrap}\n{route}")
    assert Cluster(KafkaClients(config.kafka_access), 30).offsets_kept_ms() == (2**31 - 1) * 60_000
