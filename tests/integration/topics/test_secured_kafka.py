"""Logins, certificates and permissions: against a real Kafka that asks for them, by both kinds of clients."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AclOperation

from engine.errors import HardFailureError, UnreachableError
from engine.kafka.topics import BridgeTopics
from routes.config import loads
from routes.model import Config
from tests.certificates import STORE_PASSWORD
from tests.waiting import until

if TYPE_CHECKING:
    from tests.integration.topics.conftest import JavaClient, SecuredKafka

LOGIN = (
    "kafka.security.protocol=SASL_PLAINTEXT",
    "kafka.sasl.mechanism=PLAIN",
    "kafka.sasl.username=bridge",
    "kafka.sasl.password=bridge-secret",
)


def configure(servers: str, topic: str, *lines: str, journal: str = "j", base: Path = Path()) -> Config:
    start = f"bridge.id=b\nkafka.bootstrap.servers={servers}\njournal.topic={journal}\n"
    return loads(f"{start}routes.r.in.include=TRUE\nroutes.r.out.topic={topic}\n" + "\n".join(lines), base)


def fresh(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


def test_a_topic_that_may_be_written_passes(secured_kafka: SecuredKafka) -> None:
    topic = secured_kafka.create(fresh("orders"), AclOperation.WRITE)
    BridgeTopics(configure(secured_kafka.sasl, topic, *LOGIN)).check()


def test_topics_that_may_not_be_written_are_named_at_the_start(secured_kafka: SecuredKafka) -> None:
    readable = secured_kafka.create(fresh("orders"), AclOperation.READ)
    hidden = secured_kafka.create(fresh("dead"))
    with pytest.raises(HardFailureError) as raised:
        BridgeTopics(configure(secured_kafka.sasl, readable, *LOGIN, f"routing.dead-letter-topic={hidden}")).check()
    assert str(raised.value).splitlines() == [
        f"Kafka at {secured_kafka.sasl}: 2 topics cannot be used",
        f"  topic '{readable}' (route 'r'): not authorised to write it; grant WRITE on it to the bridge's principal",
        f"  topic '{hidden}' (routing.dead-letter-topic): does not exist, or the bridge is not authorised to see it; "
        "create it, and grant WRITE on it to the bridge's principal",
    ]


def test_a_journal_needs_to_be_read_and_written(secured_kafka: SecuredKafka) -> None:
    journal = secured_kafka.create(fresh("journal"), AclOperation.WRITE)
    config = configure(secured_kafka.sasl, "t", *LOGIN, "journal.max-message-bytes=64KiB", journal=journal)
    with pytest.raises(HardFailureError, match="not authorised to read it; grant READ on it"):
        BridgeTopics(config).ensure_journal()
    secured_kafka.allow(journal, AclOperation.READ)
    assert BridgeTopics(config).ensure_journal() == 1


def test_a_topic_that_may_not_be_created_is_named(secured_kafka: SecuredKafka) -> None:
    missing = fresh("missing")
    secured_kafka.allow(missing, AclOperation.WRITE)
    config = configure(secured_kafka.sasl, missing, *LOGIN, "routing.create-topics=true")
    with pytest.raises(HardFailureError) as raised:
        BridgeTopics(config).create_missing()
    assert str(raised.value) == (
        f"Kafka at {secured_kafka.sasl}: topic '{missing}' (route 'r'): does not exist, and the bridge is not "
        "authorised to create it; grant CREATE on it to the bridge's principal, or create it by hand"
    )


def test_a_limit_that_may_not_be_read_is_left_out(secured_kafka: SecuredKafka) -> None:
    topic = secured_kafka.create(fresh("orders"), AclOperation.WRITE)
    config = configure(secured_kafka.sasl, topic, *LOGIN)
    assert BridgeTopics(config).limits() == {}
    secured_kafka.allow(topic, AclOperation.DESCRIBE_CONFIGS)
    assert list(BridgeTopics(config).limits()) == [topic]


def test_a_wrong_password_is_told_at_once_and_not_shown(secured_kafka: SecuredKafka) -> None:
    wrong = (*LOGIN[:-1], "kafka.sasl.password=hunter2")
    with pytest.raises(HardFailureError) as raised:
        BridgeTopics(configure(secured_kafka.sasl, "t", *wrong)).check(timeout_seconds=20)
    assert str(raised.value).startswith(f"Kafka at {secured_kafka.sasl} refuses the login: ")
    assert "hunter2" not in str(raised.value)


def test_java_logs_in_with_what_was_written_for_librdkafka(secured_kafka: SecuredKafka, java: JavaClient) -> None:
    topic = secured_kafka.create(fresh("orders"), AclOperation.WRITE)
    config = configure(secured_kafka.sasl, topic, *LOGIN)
    # The broker hears of the topic and of the permission a moment after the controller.
    until(lambda: topic in java.topics(config).split())


@pytest.mark.parametrize(
    "certificate",
    [
        ("ssl.ca.location=server.pem", "ssl.certificate.location=client.pem", "ssl.key.location=client.key"),
        (
            "ssl.truststore.location=server.pem",
            "ssl.keystore.location=client.p12",
            f"ssl.keystore.password={STORE_PASSWORD}",
        ),
        ("ssl.truststore.location=server.pem", "ssl.keystore.location=both.pem"),
    ],
    ids=["two PEM files", "PKCS12", "one PEM file"],
)
def test_both_clients_use_the_same_certificates(
    secured_kafka: SecuredKafka, java: JavaClient, certificate: tuple[str, ...]
) -> None:
    folder = secured_kafka.certificates
    both = "".join((folder / name).read_text() for name in ("client.key", "client.pem"))
    (folder / "both.pem").write_text(both)
    topic = secured_kafka.create(fresh("orders"))
    lines = ("kafka.security.protocol=SSL", *(f"kafka.{line}" for line in certificate))
    config = configure(secured_kafka.tls, topic, *lines, base=folder)
    BridgeTopics(config).check()
    until(lambda: topic in java.topics(config).split())


def test_a_server_that_is_not_trusted_is_refused(secured_kafka: SecuredKafka) -> None:
    lines = ("kafka.security.protocol=SSL", "kafka.ssl.ca.location=client.pem")
    config = configure(secured_kafka.tls, "t", *lines, base=secured_kafka.certificates)
    with pytest.raises(HardFailureError, match=r"no TLS: .*; check kafka\.ssl\.\* and kafka\.security\.protocol"):
        BridgeTopics(config).check(timeout_seconds=20)


def test_speaking_plainly_to_a_tls_port_is_unreachable_and_says_why(secured_kafka: SecuredKafka) -> None:
    with pytest.raises(UnreachableError, match=r"does kafka\.security\.protocol fit\?"):
        BridgeTopics(configure(secured_kafka.tls, "t")).check(timeout_seconds=4)
