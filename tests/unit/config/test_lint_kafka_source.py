"""What lint finds in the keys of a source of type `kafka`."""

from __future__ import annotations

import pytest

from engine.connectors.kafka.settings import KafkaClusterConfig, KafkaSourceConfig
from routes.config import lint_text
from routes.kafka_access import LOGIN_PREFIXES
from routes.keys.table import keys_of
from tests.unit.config.start import START


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "source.k.destinations=a(",
            "'a(' is not a regular expression: missing ), unterminated subpattern at position 1",
        ),
        ("source.k.destinations=jms-bridge.journal", "'jms-bridge.journal' is a topic of the bridge itself"),
        ("source.k.destinations=jms-bridge.journal.state", "'jms-bridge.journal.state' is a topic of the bridge"),
        (
            "routing.dead-letter-topic=d\nsource.k.destinations=d.quarantine",
            "'d.quarantine' is a topic of the bridge itself",
        ),
        ("source.k.url=stomp://h:1", "'source.k.url' is for type stomp, amqp or nats, not kafka"),
        ("source.k.password=secret", "'source.k.password' is for type stomp, amqp, jms or nats, not kafka"),
        ("source.k.selector=a = 1", "'source.k.selector' is for type stomp, amqp or jms, not kafka"),
        ("source.k.address=a.${topics}", "'${topics}' is not ${topic} or ${msg.header.NAME}"),
        ("source.k.address=a.${topic", "'${' without its '}'"),
        ("source.k.address=queue:", "'queue:' has no name"),
        ("source.k.message.type=txt", "'txt' is not auto, TEXT or BYTES"),
        (
            "embedded=off\nkafka.bootstrap.servers=h:1\nsource.s.url=stomp://h:1\nsource.k.hops=x",
            "'x' is not a whole number from 0 to 100",
        ),
        ("source.k.hops=-1", "'-1' is not a whole number from 0 to 100"),
        ("sink.k.type=kafka", "the bridge's own Kafka needs no sink"),
        ("routes.r.out.topic=k:abc", "'k' is neither kafka nor a sink"),
    ],
)
def test_slips_with_a_kafka_source(line: str, message: str) -> None:
    lines = ["source.k.type=kafka", *(["source.k.destinations=a"] if "destinations" not in line else []), line]
    found = [each.message for each in lint_text(START + "\n".join(lines)).errors]
    assert found[0].startswith(message)


def test_a_kafka_source_without_a_fault() -> None:
    lines = ("source.k.type=kafka", "source.k.destinations=a, b\\\\..*", "source.k.message.type=bytes")
    elsewhere = ("embedded=off", "kafka.bootstrap.servers=h:1", "source.s.url=stomp://h:1")
    linted = lint_text(START + "\n".join((*lines, *elsewhere, "source.k.address=queue:${topic}.${msg.header.a}")))
    assert linted.faults == ()
    config = linted.config
    assert config is not None
    source = config.sources[1]
    assert source.destinations == ("a", "b\\..*")
    assert str(source.address) == "queue:${topic}.${msg.header.a}"


OTHER = (
    "source.k.type=kafka",
    "source.k.destinations=jms-bridge.journal",
    "source.k.bootstrap.servers=other:9092",
    "embedded=off",
    "kafka.bootstrap.servers=h:1",
    "kafka.security.protocol=SSL",
    "kafka.fetch.max.wait.ms=50",
    "source.s.url=stomp://h:1",
)
LOGIN = (
    "source.k.security.protocol=SASL_SSL",
    "source.k.sasl.mechanism=SCRAM-SHA-512",
    "source.k.sasl.username=u",
    "source.k.sasl.password=marker-of-a-secret",
)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (LOGIN[:1], "'SASL_SSL' needs a mechanism"),
        (LOGIN[:3], "'SASL_SSL' needs a login"),
        ((*LOGIN, "source.k.sasl.pasword=marker-of-a-secret"), "unknown key 'source.k.sasl.pasword'"),
        ((*LOGIN, "source.k.sasl.zzz=1"), "unknown key 'source.k.sasl.zzz'"),
        (("source.k.security.protocol=SSLL",), "'SSLL' is not PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL"),
        (("source.k.sasl.mechanism=NTLM",), "'NTLM' is not PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER,"),
        ((*LOGIN, "source.k.ssl.ca.location=none.pem"), "there is no file 'none.pem'"),
        ((*LOGIN, "source.s.sasl.mechanism=PLAIN"), "'source.s.sasl.mechanism' is for type kafka, not stomp"),
        (("source.k.bootstrap.servers=other",), "'other' is not a host and a port"),
    ],
)
def test_slips_with_the_login_to_another_cluster(lines: tuple[str, ...], message: str) -> None:
    found = lint_text(START + "\n".join((*OTHER, *lines))).errors
    assert found[0].message.startswith(message)
    assert "marker" not in str(found)


def test_a_login_by_iam_needs_no_credentials_in_the_file() -> None:
    iam = ("source.k.security.protocol=SASL_SSL", "source.k.sasl.mechanism=AWS_MSK_IAM")
    own = ("kafka.sasl.mechanism=AWS_MSK_IAM", "kafka.security.protocol=SASL_SSL")
    assert lint_text(START + "\n".join((*OTHER, *iam))).faults == ()
    assert lint_text(START + "\n".join((*(line for line in OTHER if "protocol" not in line), *own))).faults == ()


def test_a_login_is_for_another_cluster_alone() -> None:
    lines = [line for line in (*OTHER, *LOGIN) if "source.k.bootstrap" not in line]
    found = lint_text(START + "\n".join(lines).replace("=jms-bridge.journal", "=a")).errors
    assert found[0].message == "'source.k.security.protocol' is for another Kafka cluster than the bridge's own"
    assert found[0].hint == "set source.k.bootstrap.servers"


def test_another_cluster_gets_its_own_login_and_the_other_settings_of_the_bridge() -> None:
    linted = lint_text(START + "\n".join((*OTHER, *LOGIN)))
    assert linted.faults == ()
    config = linted.config
    assert config is not None
    source = config.sources[1]
    assert isinstance(source, KafkaSourceConfig)
    assert config.url(source) == "kafka://other:9092"
    assert source.secrets == ("marker-of-a-secret",)
    assert "marker" not in repr(source)
    access = source.access(config.kafka_access)
    assert (access.servers, access.keys, access.is_embedded) == ("other:9092", "source.k.", False)
    assert access.common == {
        "fetch.max.wait.ms": "50",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "u",
        "sasl.password": "marker-of-a-secret",
    }


def test_the_keys_of_a_login_are_those_of_the_access() -> None:
    declared = {each.name.removesuffix("*") for each in keys_of(KafkaClusterConfig).values() if each.name[-1] == "*"}
    assert declared == set(LOGIN_PREFIXES)
