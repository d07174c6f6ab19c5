"""One set of `kafka.*` settings for two clients: the Java one inside Spark, and librdkafka in Python.

The file speaks Java's names; the tables of names are in `routes.config.kafka_names`. What lint has passed translates
without a fault here. Logins and certificates may be written in librdkafka's shorter spelling and are then translated
the other way.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from confluent_kafka import KafkaError, KafkaException, libversion

from routes.config.jaas import read_jaas, write_jaas
from routes.config.kafka_checks import store_type
from routes.config.kafka_names import COMMON, CONSUMER, PRODUCER, RESERVED, TWO_SPELLINGS
from routes.config.secrets import Secret

if TYPE_CHECKING:
    from collections.abc import Iterator

    from confluent_kafka import Consumer, Producer, TopicPartition

    from routes.model import Config

__all__ = [
    "QUIET",
    "SILENT",
    "Role",
    "committed_positions",
    "is_fatal",
    "librdkafka",
    "librdkafka_version",
    "refused_setting",
    "spark_options",
    "telling_the_end",
]

SILENT = logging.getLogger(f"{__name__}.librdkafka")
"""Takes what librdkafka would write to stderr: whoever uses it tells its errors, in one line."""
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False

QUIET: Mapping[str, Any] = {"log_level": 0, "logger": SILENT}
"""Settings of every client: librdkafka writes fatal errors to stderr at any `log_level` unless it has a logger."""

Role = Literal["producer", "consumer", "admin"]

_FATAL = frozenset({KafkaError._FATAL, KafkaError._FENCED, KafkaError.FENCED_INSTANCE_ID, KafkaError.PRODUCER_FENCED})
_GROWTH_BYTES = 1024 * 1024
"""What a record may grow by after the journal took it: headers of a dead letter, and Kafka's framing."""
_BUFFER_BYTES = 32 * 1024 * 1024
"""What Kafka's Java producer has room for by default."""


def is_fatal(error: KafkaError) -> bool:
    """Whether the client that reports an error can do nothing any more, and a new one has to be made.

    confluent-kafka 2.16 sets `KafkaError.fatal()` only on what a transactional call raises. A message, a delivery
    report and a commit carry the code `_FATAL` alone (librdkafka, `rd_kafka_fatal_error`).
    """
    return error.fatal() or error.code() in _FATAL


def committed_positions(consumer: Consumer, places: list[TopicPartition], seconds: float) -> list[TopicPartition]:
    """Returns the positions that the consumer's group has committed; a negative offset means none.

    Raises:
        KafkaException: no answer in that many seconds, or an error, also if it is of one partition only. The client
            raises those of the whole request; those of a partition it returns with an offset that looks like none.
    """
    found = consumer.committed(places, timeout=seconds)
    for place in found:
        if place.error is not None:
            raise KafkaException(place.error)
    return found


@contextmanager
def telling_the_end(producer: Producer, seconds: float) -> Iterator[None]:
    """For calls of a transactional producer: raises the KafkaException that ended it for good, not what came of it.

    confluent-kafka 2.16 runs callbacks with a fatal error raised already: whatever they do, they fail somehow. The
    producer has `seconds` to tell.
    """
    try:
        yield
    except KafkaException:
        raise
    except Exception as error:
        try:
            # Asked for anything, it tells. Nothing that is open could still be committed after such a failure.
            producer.abort_transaction(seconds)
        except KafkaException as fatal:
            if is_fatal(fatal.args[0]):
                raise fatal from error
        raise


def refused_setting(error: Exception) -> str | None:
    """Which setting a client cannot be made with, one line for users; None for any other error.

    What only the client's own libraries can judge, such as what is in a certificate's file, is found out so late.
    """
    if isinstance(error, KafkaException) and error.args[0].code() == KafkaError._INVALID_ARG:
        return f"a Kafka setting cannot be used: {error.args[0].str()}"
    return None


def librdkafka_version() -> str:
    """Of the library that talks to Kafka here, such as `2.16.0`."""
    return str(libversion()[0])


def librdkafka(config: Config, role: Role) -> dict[str, str]:
    """The settings of a confluent-kafka client: where, who, and what the role cannot do without."""
    given = _given(config, role)
    names = {**COMMON, **(PRODUCER if role == "producer" else CONSUMER if role == "consumer" else {})}
    settings = {theirs: given[name] for name, theirs in names.items() if theirs and name in given}
    settings |= _librdkafka_login(given) | _librdkafka_certificates(given)
    if "buffer.memory" in given and role == "producer":
        settings["queue.buffering.max.kbytes"] = str(max(int(given["buffer.memory"]) // 1024, 1))
    for name in ("socket.send.buffer.bytes", "socket.receive.buffer.bytes"):
        if settings.get(name) == "-1":
            settings[name] = "0"  # Each client's way to say: as the system has it.
    settings["bootstrap.servers"] = config.bootstrap_servers
    settings.setdefault("client.id", config.bridge_id)
    if role == "producer":
        # Java's partitioner, so that a key has one partition whichever client wrote it.
        settings |= {"acks": "all", "enable.idempotence": "true", "partitioner": "murmur2_random"}
        settings["message.max.bytes"] = str(config.journal.max_message_bytes + _GROWTH_BYTES)
    if role == "consumer":
        settings |= {"isolation.level": "read_committed", "enable.auto.commit": "false"}
        settings |= {"allow.auto.create.topics": "false"}
    return settings


def spark_options(config: Config, role: Role) -> dict[str, str]:
    """The options of Spark's Kafka source (consumer) or sink (producer), each with its `kafka.`.

    What is fast is left to `engine.spark.pipes`.
    """
    given = _given(config, role)
    settings = {name: value for name, value in given.items() if name not in TWO_SPELLINGS and name not in RESERVED}
    settings |= _java_login(given) | _java_certificates(given)
    settings["bootstrap.servers"] = config.bootstrap_servers
    settings.setdefault("client.id", config.bridge_id)
    if role == "producer":
        largest = config.journal.max_message_bytes + _GROWTH_BYTES
        settings |= {"acks": "all", "enable.idempotence": "true", "max.request.size": str(largest)}
        settings["buffer.memory"] = str(max(int(given.get("buffer.memory", _BUFFER_BYTES)), largest))
    if role == "consumer":
        settings |= {"isolation.level": "read_committed", "allow.auto.create.topics": "false"}
    return {f"kafka.{name}": value for name, value in settings.items()}


def _given(config: Config, role: Role) -> dict[str, str]:
    """The settings for a role by Java's names, paths made absolute; what only another role knows is left out."""
    own: Mapping[str, str] = {}
    if role == "producer":
        own = config.kafka.producer
    elif role == "consumer":
        own = config.kafka.consumer
    foreign = {
        "producer": CONSUMER.keys() - PRODUCER.keys(),
        "consumer": PRODUCER.keys() - CONSUMER.keys(),
        "admin": PRODUCER.keys() | CONSUMER.keys(),
    }[role]
    settings = {name: value for name, value in config.kafka.common.items() if name not in foreign} | dict(own)
    base = config.path.absolute().parent
    for name, value in settings.items():
        if name.startswith("ssl.") and name.endswith(".location"):
            settings[name] = str(base / value)
    return settings


def _librdkafka_login(given: Mapping[str, str]) -> dict[str, str]:
    if "sasl.jaas.config" in given:
        login = read_jaas(given["sasl.jaas.config"])
        return {"sasl.username": login.username, "sasl.password": Secret(login.password)}
    return {name: given[name] for name in ("sasl.username", "sasl.password") if name in given}


def _java_login(given: Mapping[str, str]) -> dict[str, str]:
    if "sasl.jaas.config" in given or "sasl.username" not in given:
        return {}
    mechanism = given.get("sasl.mechanism", "PLAIN")
    return {"sasl.jaas.config": Secret(write_jaas(mechanism, given["sasl.username"], given["sasl.password"]))}


def _librdkafka_certificates(given: Mapping[str, str]) -> dict[str, str]:
    settings: dict[str, str] = {}
    if trusted := given.get("ssl.ca.location") or given.get("ssl.truststore.location"):
        settings["ssl.ca.location"] = trusted
    if store := given.get("ssl.keystore.location"):
        if store_type(store, given.get("ssl.keystore.type")) == "PEM":
            settings |= {"ssl.certificate.location": store, "ssl.key.location": store}
        else:
            settings |= {"ssl.keystore.location": store, "ssl.keystore.password": given["ssl.keystore.password"]}
    settings |= {name: given[name] for name in ("ssl.certificate.location", "ssl.key.location") if name in given}
    if "ssl.endpoint.identification.algorithm" in given:
        settings["ssl.endpoint.identification.algorithm"] = given["ssl.endpoint.identification.algorithm"] or "none"
    return settings


def _java_certificates(given: Mapping[str, str]) -> dict[str, str]:
    settings: dict[str, str] = {}
    for store in ("truststore", "keystore"):
        location = given.get(f"ssl.{store}.location")
        if location and (kind := store_type(location, given.get(f"ssl.{store}.type"))):
            settings[f"ssl.{store}.type"] = kind
    if "ssl.truststore.certificates" in given:
        settings["ssl.truststore.type"] = "PEM"
    if "ssl.keystore.key" in given:
        settings["ssl.keystore.type"] = "PEM"
    if "ssl.ca.location" in given:
        settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": given["ssl.ca.location"]}
    if "ssl.certificate.location" in given:
        # Java wants one file with both, or the texts themselves.
        settings |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": Path(given["ssl.certificate.location"]).read_text(encoding="ascii"),
            "ssl.keystore.key": Secret(Path(given["ssl.key.location"]).read_text(encoding="ascii")),
        }
    if given.get("ssl.endpoint.identification.algorithm") == "none":
        settings["ssl.endpoint.identification.algorithm"] = ""
    return settings
