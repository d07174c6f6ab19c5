"""Logins to another Kafka cluster, as `jms-bridge doctor` tests them for sources and sinks."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AclOperation

from engine.connectors.base import MissingError
from engine.connectors.endpoint import SystemEndpoint
from engine.connectors.system import connector
from engine.errors import HardFailureError
from routes.config import loads

if TYPE_CHECKING:
    from tests.integration.topics.conftest import SecuredKafka


PASSWORD = "bridge-secret"


def check(kafka: SecuredKafka, section: str, topic: str, password: str = PASSWORD) -> str:
    own = f"{section}.other"
    lines = [
        "bridge.id=b",
        "kafka.bootstrap.servers=own:1",
        "kafka.security.protocol=SSL",
        f"{own}.type=kafka",
        f"{own}.bootstrap.servers={kafka.sasl}",
        f"{own}.security.protocol=SASL_PLAINTEXT",
        f"{own}.sasl.mechanism=PLAIN",
        f"{own}.sasl.username=bridge",
        f"{own}.sasl.password={password}",
        "routes.r.in.include=TRUE",
        f"routes.r.out.topic=other:{topic}"
        if section == "sink"
        else f"routes.r.out.topic=t\n{own}.destinations={topic}",
    ]
    config = loads("\n".join(lines))
    (broker,) = config.brokers
    return connector(broker.type).check_connection(SystemEndpoint.of(config, broker), "doctor")


def fresh() -> str:
    return f"other-{uuid.uuid4().hex[:8]}"


def test_a_login_with_the_right_to_read_or_write_passes(secured_kafka: SecuredKafka) -> None:
    topic = secured_kafka.create(fresh(), AclOperation.READ)
    found = f"kafka://{secured_kafka.sasl} takes the login"
    assert check(secured_kafka, "source", topic) == f"{found}; the source reads {topic}"
    with pytest.raises(HardFailureError, match=rf"topic '{topic}' \(sink 'other'\): not authorised to write it"):
        check(secured_kafka, "sink", topic)
    written = secured_kafka.create(fresh(), AclOperation.WRITE)
    assert check(secured_kafka, "sink", written) == f"{found}; the sink writes {written}"
    with pytest.raises(HardFailureError, match=rf"topic '{written}' \(source 'other'\): not authorised to read it"):
        check(secured_kafka, "source", written)


def test_a_topic_that_is_missing_is_told(secured_kafka: SecuredKafka) -> None:
    with pytest.raises(MissingError, match=r"correct source\.other\.destinations"):
        check(secured_kafka, "source", fresh())


def test_a_wrong_password_is_told_with_the_keys_of_the_source(secured_kafka: SecuredKafka) -> None:
    with pytest.raises(HardFailureError) as raised:
        check(secured_kafka, "source", "t", "hunter2-wrong")
    assert str(raised.value).endswith("check source.other.sasl.* and source.other.security.protocol")
    assert "hunter2" not in str(raised.value)
