"""Settings of those sections of a configuration that belong to the bridge itself: frozen classes.

Each field declares its key: type, bounds, default and description. Sources and sinks are in `routes.systems`, routes in
`routes.model`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from routes.keys.addresses import HOST_PORTS, TOPIC
from routes.keys.pattern import DEFAULT_KEY_PATTERN, KEY_PATTERN
from routes.keys.table import key, part
from routes.keys.values import (
    ANY_TEXT,
    CREATE_TOPICS,
    FLAG,
    PATH,
    PLACE,
    REPLICATION,
    RETENTION,
    choice,
    duration,
    durations,
    size,
    whole,
)
from routes.predicate.bodies import Bounds
from routes.targets import state_topic

if TYPE_CHECKING:
    from routes.keys.settings import Settings

__all__ = [
    "HELD",
    "HELD_BECAUSE",
    "REALTIME_INTERVAL_SECONDS",
    "BodyBounds",
    "BodyConversion",
    "Embedded",
    "EmbeddedConfig",
    "HeaderStyle",
    "JournalConfig",
    "KafkaConfig",
    "NonDurable",
    "Policy",
    "ReloadConfig",
    "RepliesConfig",
    "RouterConfig",
    "RouterMode",
    "RoutingConfig",
    "Unmatched",
]

_PORT = whole(1, 65535)
_BATCH_INTERVAL_SECONDS = 1.0
REALTIME_INTERVAL_SECONDS = 120.0
"""Default of `router.interval`: one message in a thousand, at most, waits for a commit."""


def _interval(settings: Settings, _: str) -> float:
    realtime = settings.get("router.mode") is RouterMode.REALTIME
    return REALTIME_INTERVAL_SECONDS if realtime else _BATCH_INTERVAL_SECONDS


HELD = "route-paused"
"""Reason for which a message of a paused route is not published."""
HELD_BECAUSE = "its route is paused; the bridge replays it by itself when the route is no longer paused"
"""The reason in a sentence."""


class Policy(StrEnum):
    """Treatment of a message that fails softly, and of a record that a topology cannot read or compute."""

    STOP = "stop"
    SKIP = "skip"
    DEAD_LETTER = "dead-letter"


class Unmatched(StrEnum):
    """Treatment of a message that no route wants."""

    SKIP = "skip"
    DEAD_LETTER = "dead-letter"


class HeaderStyle(StrEnum):
    """Spellings of JMS headers on routed records."""

    TEXT = "text"
    TYPED = "typed"
    SHORT = "short"


class NonDurable(StrEnum):
    """Treatment of messages sent as NON_PERSISTENT: routed or dropped."""

    PROPAGATE = "propagate"
    DROP = "drop"


class RouterMode(StrEnum):
    """Modes in which Spark runs the router: records as they come, or in micro-batches."""

    REALTIME = "realtime"
    BATCH = "batch"


class Embedded(StrEnum):
    """Choice of when the bridge starts brokers of its own: when no other is configured, always, or never."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


class BodyConversion(StrEnum):
    """Treatment of bodies that are neither text nor bytes: fail softly, take those that are JSON, or take all."""

    AS_IS = "as-is"
    JSON = "json"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class BodyBounds(Bounds):
    """`routing.body.*`: sizes beyond which bodies are not read."""

    size: int = key(
        "routing.body.max-bytes",
        size("1KiB", "64MiB"),
        "Size of the largest body that routes read: a larger body has no values for predicates, keys and "
        "destinations, and cannot be masked or converted between JSON and XML. A body is read in memory; a masked body "
        "may have four times as many bytes.",
        default="1MiB",
    )
    depth: int = key(
        "routing.body.max-depth",
        whole(1, 200),
        "Greatest number of objects, arrays or elements around a value of a body that routes read.",
        default="100",
    )
    elements: int = key(
        "routing.body.max-elements",
        whole(1, 1_000_000),
        "Greatest number of values that a path with `[*]`, or a path into XML, names in a body; a condition about more "
        "values is unknown, unless one of the first values decides it.",
        default="10000",
    )


@dataclass(frozen=True, slots=True)
class RoutingConfig:
    """`routing.*`: settings for all routes."""

    dead_letter_topic: str | None = key(
        "routing.dead-letter-topic",
        TOPIC,
        "Topic for messages that the policy `dead-letter` sets aside, and for those that a source or a sink cannot "
        "pass on, unless their policy is `skip`. The bridge stops when it cannot write to it.",
        default_note="`<journal.topic>.set-aside`, created when missing; the policy `dead-letter` needs a name",
        example="jms-bridge.dead-letter",
        aliases=("routing.dead-letter.topic",),
    )
    on_soft_failure: Policy = key(
        "routing.on-soft-failure",
        choice(Policy),
        "Treatment of a message whose key or body cannot be used: stop the bridge, log and skip the message, or log "
        "and dead-letter it. With `stop`, one message of one sender can stop the bridge. A message that its source "
        "cannot read, or that the system behind a sink refuses, never stops it: with `stop` such a message becomes a "
        "dead letter.",
        default="stop",
    )
    on_unmatched: Unmatched = key(
        "routing.on-unmatched",
        choice(Unmatched),
        "Treatment of a message that no route takes. It is counted either way.",
        default="skip",
    )
    max_replays: int = key(
        "routing.max-replays",
        whole(1, 1000),
        "Greatest number of replays of a dead letter: a message that fails again after the last replay goes into "
        "`<dead-letter topic>.quarantine` instead.",
        default="3",
    )
    """Number of replays after which a message that fails again is put into quarantine instead of replayed."""
    retry: tuple[float, ...] = key(
        "routing.retry",
        durations("1s", "7d", 20),
        "Pauses after which the bridge replays a dead letter by itself, as in `5s, 1m, 10m`: the first after the "
        "first failure, the second after the next, and so on. A letter that fails after the last pause waits for an "
        "operator. A message that is retried comes after later messages of its key. `routing.max-replays` does not "
        "count these replays.",
        example="5s, 1m, 10m",
        made=lambda value, *_: value or (),
        value=(),
    )
    """Pauses in seconds, one for each retry."""
    headers: HeaderStyle = key(
        "routing.headers",
        choice(HeaderStyle),
        "Spelling of JMS headers on records: `jms.JMSCorrelationID` in text, `jms.<type>.<name>` in binary, or "
        "`jms.CorrelationId` in text.",
        default="text",
    )
    non_durable: NonDurable = key(
        "routing.non-durable",
        choice(NonDurable),
        "Treatment of messages sent as NON_PERSISTENT: routed like all others, or dropped and counted.",
        default="propagate",
    )
    key_pattern: str = key(
        "routing.key-pattern",
        KEY_PATTERN,
        "Pattern that a key taken from a header has to match as a whole.",
        default=DEFAULT_KEY_PATTERN,
        default_note="[see below](#keys-of-records)",
        example="[A-Z]+-[0-9]+",
    )
    """Regular expression that the whole key has to match; Java and Python read it alike."""
    bounds: BodyBounds = part(BodyBounds, BodyBounds())
    create_topics: bool | None = key(
        "routing.create-topics",
        CREATE_TOPICS,
        "Creation of missing destination topics, and of those that a Kafka source names in full; `auto`: only on the "
        "embedded Kafka.",
        default="auto",
    )
    """True if missing destination topics are created; None: only on the embedded Kafka."""


@dataclass(frozen=True, slots=True)
class RepliesConfig:
    """`replies.*`: the replies that the bridge takes back to requesters."""

    conversion: BodyConversion = key(
        "replies.conv.body",
        choice(BodyConversion),
        "Bodies of replies that the bridge takes back to requesters, as `routes.NAME.conv.body`. To AMQP every "
        "body goes as it is.",
        default="json",
    )
    on_soft_failure: Unmatched = key(
        "replies.on-soft-failure",
        choice(Unmatched),
        "Treatment of a reply that cannot be routed to its requester: log and skip it, or log and dead-letter it.",
        default="dead-letter",
    )


@dataclass(frozen=True, slots=True)
class JournalConfig:
    """`journal.*`: the durable topic between the sources and the router."""

    topic: str = key(
        "journal.topic", TOPIC, "Name of the journal's topic. Created when missing.", default="jms-bridge.journal"
    )
    state_topic: str = key(
        "journal.state-topic",
        TOPIC,
        "Topic beside the journal in which bridges of one `bridge.id` elect their leader and the router notes its "
        "position. It has one partition and is compacted. Created when missing.",
        default_note="`<journal.topic>.state`",
        inherited=lambda settings, _: state_topic(settings.get("journal.topic")),
        example="jms-bridge.state",
    )
    """Topic in which bridges of one id elect a leader, and the router notes its offsets."""
    partitions: int = key(
        "journal.partitions",
        whole(1, 1000),
        "Number of partitions at creation; as many messages are routed side by side.",
        default="4",
    )
    replication: int = key(
        "journal.replication",
        REPLICATION,
        "Replication factor at creation; `broker`: the default of the cluster.",
        default="broker",
    )
    """Replication factor; -1: the cluster's default."""
    retention_ms: int = key(
        "journal.retention",
        RETENTION,
        "Time for which messages are kept, routed or not; set at creation.",
        default="7d",
        made=lambda seconds, *_: round(seconds * 1000),
    )
    """Retention; -1: for ever."""
    max_message_bytes: int = key(
        "journal.max-message-bytes",
        size("64KiB", "512MiB"),
        "Size of the largest message that is taken in, with its headers.",
        default="8MiB",
    )


@dataclass(frozen=True, slots=True)
class RouterConfig:
    """`router.*`: how Spark runs the router."""

    mode: RouterMode = key(
        "router.mode",
        choice(RouterMode),
        "Mode of routing: each message as it comes, or batches `router.interval` apart.",
        default="realtime",
    )
    interval_seconds: float = key(
        "router.interval",
        duration("0s", "1h"),
        "Real-time mode: time between two commits, each of which holds messages up for a tenth of a second; after a "
        "crash, the messages since the last commit are compared with the outputs. Batch mode: time between two "
        "batches.",
        default_note="2m; 1s in batch mode",
        inherited=_interval,
        example="30s",
    )
    """Real-time mode: time between two commits. Batch mode: time between two batches."""
    checkpoint: Path | str = key(
        "router.checkpoint",
        PLACE,
        "Directory that keeps the router's position. A relative path begins at this file. A URI of a file system that "
        "Hadoop knows, such as `hdfs://host:8020/jms-bridge`, is [for machines that come and "
        "go](operations.md#checkpoints-on-hdfs-and-object-stores).",
        default="var/checkpoint",
    )
    """A local path, or the URI of a folder on a file system of Hadoop."""
    outage_timeout_seconds: float = key(
        "router.outage-timeout",
        duration("1s", "7d"),
        "Time for which Kafka may be out of reach before the bridge stops. An outage of any other system stops only "
        "its own source or sink, which tries again until the system is back.",
        default="5m",
    )
    """Time for which brokers may be out of reach before the bridge stops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaConfig:
    """`kafka.*`, in the Java clients' spelling; `engine.kafka` translates for librdkafka."""

    bootstrap_servers: str | None = key(
        "kafka.bootstrap.servers",
        HOST_PORTS,
        "Addresses of the brokers.",
        default_note="the embedded Kafka",
        example="127.0.0.1:9092",
    )
    """None: the embedded Kafka."""
    producer: Mapping[str, str] = key(
        "kafka.producer.*",
        ANY_TEXT,
        "Any producer setting, for producers only.",
        example="kafka.producer.compression.type=lz4",
        factory=dict,
    )
    consumer: Mapping[str, str] = key(
        "kafka.consumer.*",
        ANY_TEXT,
        "Any consumer setting, for consumers only.",
        example="kafka.consumer.fetch.max.wait.ms=50",
        factory=dict,
    )
    common: Mapping[str, str] = key(
        "kafka.*",
        ANY_TEXT,
        "Any setting, for all clients.",
        example="kafka.security.protocol=SASL_SSL",
        factory=dict,
    )
    """Settings for all clients: `kafka.<name>` without the prefix and without `bootstrap.servers`."""


@dataclass(frozen=True, slots=True)
class EmbeddedConfig:
    """`embedded*`: the brokers that come with the bridge."""

    mode: Embedded = key(
        "embedded",
        choice(Embedded),
        "`auto`: Kafka is started without `kafka.bootstrap.servers`, Artemis and NATS for sources and sinks of "
        "their type without `url`.",
        default="auto",
    )
    kafka_port: int = key("embedded.kafka.port", _PORT, "Port of the embedded Kafka.", default="9092")
    artemis_port: int = key(
        "embedded.artemis.port", _PORT, "Port of the embedded Artemis for JMS clients (core).", default="61616"
    )
    stomp_port: int = key("embedded.stomp.port", _PORT, "Port of the embedded Artemis for STOMP.", default="61613")
    amqp_port: int = key("embedded.amqp.port", _PORT, "Port of the embedded Artemis for AMQP.", default="5672")
    nats_port: int = key("embedded.nats.port", _PORT, "Port of the embedded NATS server.", default="4222")
    data: Path = key(
        "embedded.data",
        PATH,
        "Directory for the data of the embedded brokers, and for every bridge's logs and locks. A relative path "
        "begins at this file.",
        default="var",
    )

    @property
    def ports(self) -> Mapping[str, int]:
        """The ports by the keys that set them."""
        servers = ("kafka", "artemis", "stomp", "amqp", "nats")
        return {f"embedded.{server}.port": getattr(self, f"{server}_port") for server in servers}


@dataclass(frozen=True, slots=True)
class ReloadConfig:
    """`reload.*`: when a running bridge reads its configuration again, besides on SIGHUP."""

    watch: bool = key(
        "reload.watch",
        FLAG,
        "`true`: a running bridge reads this file again when it has changed.",
        default="false",
    )
    """True if the bridge does so when the file changes."""
