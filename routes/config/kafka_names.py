"""The settings of Kafka's Java clients, and their names in librdkafka.

Java's names are those of kafka-clients 3.9 (`ProducerConfig`, `ConsumerConfig`), librdkafka's those of its
CONFIGURATION.md. `engine.kafka` translates by these tables, and lint knows names by them.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["COMMON", "CONSUMER", "PRODUCER", "RESERVED", "RESERVED_SPARK", "TWO_SPELLINGS"]

COMMON: Mapping[str, str | None] = {
    "auto.include.jmx.reporter": None,
    "client.dns.lookup": "client.dns.lookup",
    "client.id": "client.id",
    "client.rack": "client.rack",
    "connections.max.idle.ms": "connections.max.idle.ms",
    "default.api.timeout.ms": None,
    "enable.metrics.push": "enable.metrics.push",
    "metadata.max.age.ms": "topic.metadata.refresh.interval.ms",
    "metadata.recovery.strategy": "metadata.recovery.strategy",
    "metric.reporters": None,
    "metrics.num.samples": None,
    "metrics.recording.level": None,
    "metrics.sample.window.ms": None,
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "reconnect.backoff.max.ms": "reconnect.backoff.max.ms",
    "reconnect.backoff.ms": "reconnect.backoff.ms",
    "request.timeout.ms": "socket.timeout.ms",
    "retries": None,
    "retry.backoff.max.ms": "retry.backoff.max.ms",
    "retry.backoff.ms": "retry.backoff.ms",
    "sasl.client.callback.handler.class": None,
    "sasl.jaas.config": None,
    "sasl.login.callback.handler.class": None,
    "sasl.login.class": None,
    "sasl.login.connect.timeout.ms": None,
    "sasl.login.read.timeout.ms": None,
    "sasl.login.retry.backoff.max.ms": None,
    "sasl.login.retry.backoff.ms": None,
    "sasl.mechanism": "sasl.mechanism",
    "security.protocol": "security.protocol",
    "security.providers": None,
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "socket.connection.setup.timeout.max.ms": None,
    "socket.connection.setup.timeout.ms": "socket.connection.setup.timeout.ms",
    "ssl.cipher.suites": None,
    "ssl.enabled.protocols": None,
    "ssl.endpoint.identification.algorithm": None,
    "ssl.engine.factory.class": None,
    "ssl.key.password": "ssl.key.password",
    "ssl.keymanager.algorithm": None,
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.keystore.location": None,
    "ssl.keystore.password": None,
    "ssl.keystore.type": None,
    "ssl.protocol": None,
    "ssl.provider": None,
    "ssl.secure.random.implementation": None,
    "ssl.trustmanager.algorithm": None,
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.truststore.location": None,
    "ssl.truststore.password": None,
    "ssl.truststore.type": None,
}
"""Settings of every client, mapped to librdkafka's names; None if it has none, or if `engine.kafka` does more than
rename."""

PRODUCER: Mapping[str, str | None] = {
    "batch.size": "batch.size",
    "buffer.memory": None,
    "compression.gzip.level": None,
    "compression.lz4.level": None,
    "compression.type": "compression.type",
    "compression.zstd.level": None,
    "delivery.timeout.ms": "delivery.timeout.ms",
    "linger.ms": "linger.ms",
    "max.block.ms": None,
    "max.in.flight.requests.per.connection": "max.in.flight.requests.per.connection",
    "metadata.max.idle.ms": None,
    "partitioner.adaptive.partitioning.enable": None,
    "partitioner.availability.timeout.ms": None,
    "partitioner.ignore.keys": None,
    "transaction.timeout.ms": "transaction.timeout.ms",
}
"""Settings of producers only."""

CONSUMER: Mapping[str, str | None] = {
    "check.crcs": "check.crcs",
    "exclude.internal.topics": None,
    "fetch.max.bytes": "fetch.max.bytes",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "fetch.min.bytes": "fetch.min.bytes",
    "group.protocol": None,
    "group.remote.assignor": None,
    "heartbeat.interval.ms": "heartbeat.interval.ms",
    "max.partition.fetch.bytes": "max.partition.fetch.bytes",
    "max.poll.interval.ms": "max.poll.interval.ms",
    "max.poll.records": None,
    "partition.assignment.strategy": None,
    "session.timeout.ms": "session.timeout.ms",
}
"""Settings of consumers only."""

TWO_SPELLINGS = frozenset(
    {"sasl.username", "sasl.password", "ssl.ca.location", "ssl.certificate.location", "ssl.key.location"}
)
"""Names of librdkafka that are accepted as well, and translated for Java."""

RESERVED: Mapping[str, tuple[str | None, str]] = {
    "acks": ("all", "a message counts as kept only when all replicas have it"),
    "allow.auto.create.topics": ("false", "a topic is created on purpose, see routing.create-topics"),
    "auto.commit.interval.ms": (None, "the router keeps its own place"),
    "auto.offset.reset": (None, "the router keeps its own place"),
    "enable.auto.commit": ("false", "the router keeps its own place"),
    "enable.idempotence": ("true", "a retry must not write a message twice"),
    "group.id": (None, "the router reads the whole journal, without a group"),
    "group.instance.id": (None, "the router reads the whole journal, without a group"),
    "interceptor.classes": (None, "Spark's Kafka source does not allow it"),
    "isolation.level": ("read_committed", "what a transaction took back must not be routed"),
    "key.deserializer": (None, "records are bytes"),
    "key.serializer": (None, "records are bytes"),
    "max.request.size": (None, "it follows journal.max-message-bytes"),
    "partitioner.class": (None, "a key has to lead to the same partition from every client"),
    "transactional.id": (None, "the bridge names its own transactions"),
    "value.deserializer": (None, "records are bytes"),
    "value.serializer": (None, "records are bytes"),
}
"""Settings that the bridge makes itself: the one value that is allowed (None: no value), and the reason."""

RESERVED_SPARK: Mapping[str, tuple[str | None, str]] = {
    "spark.sql.streaming.checkpointLocation": (None, "set router.checkpoint instead"),
    "spark.sql.ansi.enabled": ("true", "predicates rely on it"),
    "spark.speculation": ("false", "a task that runs twice publishes twice"),
}
"""Settings of Spark that the bridge makes itself, in the form of `RESERVED`."""
