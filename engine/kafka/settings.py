"""Settings of both Kafka clients, made from the `kafka.*` keys: the Java client inside Spark, and librdkafka in Python.

The configuration file uses Java's names; the tables of names are in `engine.kafka.section`. A configuration that
lint accepts translates here without a fault. Logins and certificates may be written in librdkafka's shorter spelling;
they are then translated to Java's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from engine.kafka.login_checks import is_file
from engine.kafka.msk_token import msk_region
from engine.kafka.section import COMMON, CONSUMER, PRODUCER, RESERVED, TWO_SPELLINGS
from engine.kafka.security import (
    ENDPOINT,
    ISSUER,
    ISSUER_TRUST,
    MSK_IAM,
    java_certificates,
    java_login,
    librdkafka_certificates,
    librdkafka_login,
)
from engine.openid.token_request import token_endpoint

if TYPE_CHECKING:
    from routes.kafka_access import KafkaAccess

__all__ = ["JavaClients", "Role", "java_clients", "java_settings", "librdkafka"]

Role = Literal["producer", "consumer", "admin"]

_GROWTH_BYTES = 1024 * 1024
"""Bytes by which a record may exceed the journal's limit: headers of a dead letter, and Kafka's framing."""
_BUFFER_BYTES = 32 * 1024 * 1024
"""Default of `buffer.memory` in Kafka's Java producer."""


def librdkafka(access: KafkaAccess, role: Role) -> dict[str, str]:
    """Settings of a confluent-kafka client: the cluster's address, the login, and the fixed settings of the role.

    Raises:
        HardFailureError: the issuer of tokens names no token endpoint.
        UnreachableError: the issuer of tokens does not answer.
    """
    given = _given(access, role)
    names = {**COMMON, **(PRODUCER if role == "producer" else CONSUMER if role == "consumer" else {})}
    settings = {theirs: given[name] for name, theirs in names.items() if theirs and name in given}
    settings |= librdkafka_login(given) | librdkafka_certificates(given)
    if "buffer.memory" in given and role == "producer":
        settings["queue.buffering.max.kbytes"] = str(max(int(given["buffer.memory"]) // 1024, 1))
    for name in ("socket.send.buffer.bytes", "socket.receive.buffer.bytes"):
        if settings.get(name) == "-1":
            settings[name] = "0"  # The operating system's default: -1 for the Java client, 0 for librdkafka.
    settings["bootstrap.servers"] = access.servers
    settings.setdefault("client.id", access.client_id)
    if role == "producer":
        # Java's partitioner: both clients write a key to the same partition.
        settings |= {"acks": "all", "enable.idempotence": "true", "partitioner": "murmur2_random"}
        # Of two batches on their way, Kafka may refuse the first and take the second, if it knows nothing of the
        # producer in that partition yet. librdkafka then takes the first for written as well: a message would be lost.
        settings["max.in.flight.requests.per.connection"] = "1"
        settings["message.max.bytes"] = str(access.max_message_bytes + _GROWTH_BYTES)
    if role == "consumer":
        settings |= {"isolation.level": "read_committed", "enable.auto.commit": "false"}
        settings |= {"allow.auto.create.topics": "false"}
    return settings


def java_settings(access: KafkaAccess, role: Role) -> dict[str, str]:
    """Settings of a client in Java, without those that matter only for speed.

    Raises as `librdkafka`, and HardFailureError for a login by IAM to brokers whose region is not known.
    """
    given = _given(access, role)
    settings = {name: value for name, value in given.items() if name not in TWO_SPELLINGS and name not in RESERVED}
    region = msk_region(access.servers) if given.get("sasl.mechanism") == MSK_IAM else ""
    settings |= java_login(given, region) | java_certificates(given)
    settings["bootstrap.servers"] = access.servers
    settings.setdefault("client.id", access.client_id)
    if role == "producer":
        largest = access.max_message_bytes + _GROWTH_BYTES
        settings |= {"acks": "all", "enable.idempotence": "true", "max.request.size": str(largest)}
        settings["buffer.memory"] = str(max(int(given.get("buffer.memory", _BUFFER_BYTES)), largest))
    if role == "consumer":
        settings |= {"isolation.level": "read_committed", "allow.auto.create.topics": "false"}
    return settings


@dataclass(frozen=True, slots=True)
class JavaClients:
    """Settings of the clients in Java with which a query reads and writes, without those that matter only for speed."""

    consumer: Mapping[str, str]
    producer: Mapping[str, str]


def java_clients(access: KafkaAccess) -> JavaClients:
    """The settings of the clients in Java for a Kafka cluster."""
    return JavaClients(java_settings(access, "consumer"), java_settings(access, "producer"))


def _given(access: KafkaAccess, role: Role) -> dict[str, str]:
    """The settings for a role under Java's names, with absolute paths and without those that only other roles know."""
    of_role: Mapping[str, str] = {}
    if role == "producer":
        of_role = access.producer
    elif role == "consumer":
        of_role = access.consumer
    foreign = {
        "producer": CONSUMER.keys() - PRODUCER.keys(),
        "consumer": PRODUCER.keys() - CONSUMER.keys(),
        "admin": PRODUCER.keys() | CONSUMER.keys(),
    }[role]
    settings = {name: value for name, value in access.common.items() if name not in foreign} | dict(of_role)
    base = access.file.absolute().parent
    for name, value in settings.items():
        if is_file(name):
            settings[name] = str(base / value)
    if ISSUER in settings:
        keys = f"{access.keys}sasl.oauthbearer."
        settings[ENDPOINT] = token_endpoint(settings[ISSUER], settings.get(ISSUER_TRUST), keys)
    return settings
