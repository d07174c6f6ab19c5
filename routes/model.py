"""The values of a configuration: frozen, typed, and passed around by the rest of the project.

No option is passed further inward as text. `routes.config` makes these values from a properties file; its field table
has each key's default, unit and description.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from routes.keys.addresses import ENDPOINT, TOPIC
from routes.keys.pattern import DEFAULT_KEY_PATTERN, KEY_PATTERN
from routes.keys.table import key
from routes.keys.values import (
    CREATE_TOPICS,
    FLAG,
    PATH,
    RATIO,
    REPLICATION,
    RETENTION,
    choice,
    duration,
    size,
    whole,
)
from routes.systems import BrokerConfig, SinkConfig, SourceConfig
from routes.targets import audit_topic, quarantine_topic, set_aside_topic, state_topic

if TYPE_CHECKING:
    from routes.keys.settings import Settings
    from routes.predicate.nodes import Predicate
    from routes.targets import Template

__all__ = [
    "Acknowledge",
    "BodyConversion",
    "BrokerConfig",
    "Config",
    "Embedded",
    "EmbeddedConfig",
    "FileWatch",
    "HeaderStyle",
    "HttpConfig",
    "JournalConfig",
    "KafkaConfig",
    "MessageType",
    "NonDurable",
    "Policy",
    "Processed",
    "ReloadConfig",
    "Route",
    "RouterConfig",
    "RouterMode",
    "RoutingConfig",
    "SinkConfig",
    "SourceConfig",
    "Target",
    "TracingConfig",
    "Unmatched",
    "WireFormat",
]


_PORT = whole(1, 65535)
_BATCH_INTERVAL_SECONDS = 1.0
_REALTIME_INTERVAL_SECONDS = 120.0


def _interval(settings: Settings, _: str) -> float:
    realtime = settings.get("router.mode") is RouterMode.REALTIME
    return _REALTIME_INTERVAL_SECONDS if realtime else _BATCH_INTERVAL_SECONDS


class Policy(StrEnum):
    """Treatment of a message that fails softly."""

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


class WireFormat(StrEnum):
    """Encodings of JMS headers in a NATS message, see docs/connectors/nats.md."""

    AUTO = "auto"
    """Only for reading: a frame if the payload begins like one, else NATS' own headers."""
    HEADERS = "headers"
    JSON = "json"
    TYPED = "typed"
    """The typed frames of nats-jms-bridge 0.3.0 to 0.23.0."""
    TYPED_1_0 = "typed-1.0"
    """The typed frames of nats-jms-bridge 0.24.1 to 1.0.4, which have a correlation id and other codes of names."""
    RAW = "raw"


class Acknowledge(StrEnum):
    """Acknowledgement modes of a STOMP source: each message that the journal has, or all up to one."""

    INDIVIDUAL = "individual"
    CUMULATIVE = "cumulative"


class MessageType(StrEnum):
    """Kinds of JMS message that a Kafka source makes of a record's value."""

    AUTO = "auto"
    """The kind that the record declares, if a bridge wrote it; else text if the value is UTF-8."""
    TEXT = "TEXT"
    BYTES = "BYTES"


class FileWatch(StrEnum):
    """Ways in which a dropbox source notices new files: notified by the system, or by looking at intervals."""

    INOTIFY = "inotify"
    SCAN = "scan"


class Processed(StrEnum):
    """Treatment of files by a dropbox source after the journal has them."""

    KEEP = "keep"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Target:
    """The destination of a route's messages."""

    address: Template
    """Template of the Kafka topic, or of the address to which the sink sends a message."""
    topics: tuple[str, ...]
    """The Kafka topics that the router may write: the destination itself, or the topic that `sink` reads. If headers
    choose the topic, these are the existing topics that the template can make; `engine.kafka.topics` finds them."""
    sink: str | None = None
    """Name of the sink that sends the messages on; None: they stay in Kafka."""

    @property
    def topic(self) -> str | None:
        """The one topic that the router writes; None if headers choose it."""
        return None if self.sink is None and self.address.references else self.topics[0]

    def __str__(self) -> str:
        return f"{self.sink or 'kafka'}:{self.address}"


@dataclass(frozen=True, slots=True)
class Route:
    """A complete route: `routes.<id>.*` with its predicates parsed and its policy resolved."""

    name: str
    include: Predicate
    target: Target
    exclude: Predicate | None = None
    key: str | None = None
    """JMS field or property that becomes the record key, in JMS spelling. None: JMSMessageID, unchanged; for a sink the
    key of the journal record, which keeps the order of messages that belong together."""
    on_soft_failure: Policy = Policy.STOP
    conversion: BodyConversion = BodyConversion.AS_IS
    """Always `ANY` for an AMQP sink, which keeps the kind of each message."""
    added: bool = False
    """Whether the bridge added the route, for replies to requests."""


@dataclass(frozen=True, slots=True)
class RoutingConfig:
    """`routing.*`: settings for all routes."""

    dead_letter_topic: str | None = key(
        "routing.dead-letter-topic",
        TOPIC,
        "Topic for what the policy `dead-letter` sets aside, and for messages that a source or a sink cannot pass "
        "on, unless their policy is `skip`. The bridge stops when it cannot write there.",
        default_note="`<journal.topic>.set-aside`, created when missing; the policy `dead-letter` needs a name",
        example="jms-bridge.dead-letter",
        aliases=("routing.dead-letter.topic",),
    )
    on_soft_failure: Policy = key(
        "routing.on-soft-failure",
        choice(Policy),
        "What happens to a message whose key or body cannot be used: stop the bridge, log and skip the message, or "
        "log and dead-letter it. A message that its source cannot read, or that the system behind a sink refuses, "
        "never stops the bridge: with `stop` it becomes a dead letter.",
        default="stop",
    )
    on_unmatched: Unmatched = key(
        "routing.on-unmatched",
        choice(Unmatched),
        "What happens to a message that no route takes. It is counted either way.",
        default="skip",
    )
    max_replays: int = key(
        "routing.max-replays",
        whole(1, 1000),
        "How often a dead letter is replayed: a message that fails again after so many replays goes into "
        "`<dead-letter topic>.quarantine` instead.",
        default="3",
    )
    """Number of replays after which a message that fails again is put into quarantine instead of replayed."""
    headers: HeaderStyle = key(
        "routing.headers",
        choice(HeaderStyle),
        "How JMS headers are spelt on records: `jms.JMSCorrelationID` in text, `jms.<type>.<name>` in binary, or "
        "`jms.CorrelationId` in text.",
        default="text",
    )
    non_durable: NonDurable = key(
        "routing.non-durable",
        choice(NonDurable),
        "Whether messages sent as NON_PERSISTENT are routed; dropped ones are counted.",
        default="propagate",
    )
    key_pattern: str = key(
        "routing.key-pattern",
        KEY_PATTERN,
        "What the whole of a key taken from a header has to match.",
        default=DEFAULT_KEY_PATTERN,
        default_note="[see below](#keys-of-records)",
        example="[A-Z]+-[0-9]+",
    )
    """Regular expression that the whole key has to match; Java and Python read it alike."""
    create_topics: bool | None = key(
        "routing.create-topics",
        CREATE_TOPICS,
        "Whether missing destination topics, and those that a Kafka source names in full, "
        "are created; `auto`: only on the embedded Kafka.",
        default="auto",
    )
    """Whether missing destination topics are created; None: only on the embedded Kafka."""


@dataclass(frozen=True, slots=True)
class JournalConfig:
    """`journal.*`: the durable topic between the sources and the router."""

    topic: str = key("journal.topic", TOPIC, "Its name. Created when missing.", default="jms-bridge.journal")
    state_topic: str = key(
        "journal.state-topic",
        TOPIC,
        "The topic beside it in which bridges of one `bridge.id` agree on who leads, and the router notes its "
        "place. It has one partition and is compacted. Created when missing.",
        default_note="`<journal.topic>.state`",
        inherited=lambda settings, _: state_topic(settings.get("journal.topic")),
        example="jms-bridge.state",
    )
    """Topic in which bridges of one id elect a leader, and the router notes its offsets."""
    partitions: int = key(
        "journal.partitions",
        whole(1, 1000),
        "Partitions at creation: how many messages are routed side by side.",
        default="4",
    )
    replication: int = key(
        "journal.replication",
        REPLICATION,
        "Copies of each message at creation; `broker`: as the cluster has it.",
        default="broker",
    )
    """Replication factor; -1: the cluster's default."""
    retention_ms: int = key(
        "journal.retention",
        RETENTION,
        "How long messages are kept, routed or not; at creation.",
        default="7d",
        made=lambda seconds, *_: round(seconds * 1000),
    )
    """Retention; -1: for ever."""
    max_message_bytes: int = key(
        "journal.max-message-bytes",
        size("64KiB", "512MiB"),
        "The largest message that is taken in, with its headers.",
        default="8MiB",
    )


@dataclass(frozen=True, slots=True)
class RouterConfig:
    """`router.*`: how Spark runs the router."""

    mode: RouterMode = key(
        "router.mode",
        choice(RouterMode),
        "Each message as it comes, or in batches, `router.interval` apart.",
        default="realtime",
    )
    interval_seconds: float = key(
        "router.interval",
        duration("0s", "1h"),
        "In real-time mode, the time between two commits: what is compared with the outputs after a crash; "
        "each commit holds messages up for some tenths of a second. In batch mode, the time between two batches.",
        default_note="2m; 1s in batch mode",
        inherited=_interval,
        example="30s",
    )
    """Real-time mode: time between two commits. Batch mode: time between two batches."""
    checkpoint: Path = key(
        "router.checkpoint",
        PATH,
        "Directory that keeps the router's place. A relative path begins at this file.",
        default="var/checkpoint",
    )
    outage_timeout_seconds: float = key(
        "router.outage-timeout",
        duration("1s", "7d"),
        "How long Kafka may be gone before the bridge stops. An outage of any other system stops only its own "
        "source or sink, which tries again until it is back.",
        default="5m",
    )
    """Time for which brokers may be out of reach before the bridge stops."""


@dataclass(frozen=True, slots=True)
class KafkaConfig:
    """`kafka.*`, in the Java clients' spelling; `engine.kafka` translates for librdkafka."""

    bootstrap_servers: str | None
    """None: the embedded Kafka."""
    common: Mapping[str, str] = field(default_factory=dict)
    """Settings for all clients: `kafka.<name>` without the prefix and without `bootstrap.servers`."""
    producer: Mapping[str, str] = field(default_factory=dict)
    consumer: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HttpConfig:
    """`http.*`: the address at which metrics and health are served, and who may read them."""

    host: str
    port: int
    certificate: Path | None = None
    """Certificate for TLS; None: without TLS."""
    key: Path | None = None
    token: str | None = field(default=None, repr=False)
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    metrics_host: str | None = None
    """Host of a second address for metrics and health, without login and TLS; None: there is none."""
    metrics_port: int = 0


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
        "Directory of what they store, and of every bridge's logs and locks. A relative path begins at this file.",
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
    """Whether it does so when the file changes."""


@dataclass(frozen=True, slots=True)
class TracingConfig:
    """`tracing.*`: the treatment of the trace that a message belongs to."""

    propagate: bool = key(
        "tracing.propagate",
        FLAG,
        "Whether a record has the valid trace context of its message (`traceparent`, `tracestate`) in headers of "
        "these names, where Kafka's clients look for it, beside the JMS properties; and whether such headers of "
        "Kafka and NATS stand before other properties of these names.",
        default="true",
    )
    """Whether a valid trace context of a message is published in headers of its own, beside the properties."""
    endpoint: str | None = key(
        "tracing.endpoint",
        ENDPOINT,
        "Where spans of sources and sinks are sent, OTLP over HTTP; without a path it is `/v1/traces`. Needs the "
        "packages of the [extra `tracing`](tracing.md#spans).",
        example="http://127.0.0.1:4318",
    )
    """URL to which spans are sent, path included; None: there are none."""
    sample_ratio: float = key(
        "tracing.sample-ratio",
        RATIO,
        "How many of the traces that begin in this bridge are recorded, from 0 to 1. A message that belongs to one "
        "is recorded if that is.",
        default="1",
        example="0.01",
    )
    """Share of the traces that begin here to record, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Config:
    """A whole configuration, free of faults."""

    path: Path
    bridge_id: str
    kafka: KafkaConfig
    journal: JournalConfig
    router: RouterConfig
    routing: RoutingConfig
    routes: tuple[Route, ...]
    sources: tuple[SourceConfig, ...]
    sinks: tuple[SinkConfig, ...]
    http: HttpConfig
    embedded: EmbeddedConfig
    spark: Mapping[str, str] = field(default_factory=dict)
    reload: ReloadConfig = field(default_factory=ReloadConfig)
    tracing: TracingConfig = field(default_factory=TracingConfig)
    secret_variables: frozenset[str] = frozenset()
    """Names of the environment variables that secrets came from; processes that the bridge starts do not need them."""
    text: str = field(default="", repr=False, compare=False)
    """Text of the file that the configuration was read from, as it was then."""

    @property
    def embedded_kafka(self) -> bool:
        """True if the bridge starts its own Kafka."""
        return self.embedded.mode is Embedded.ON or (
            self.embedded.mode is Embedded.AUTO and self.kafka.bootstrap_servers is None
        )

    @property
    def embedded_artemis(self) -> bool:
        """True if the bridge starts its own Artemis."""
        return self._embeds("artemis")

    @property
    def embedded_nats(self) -> bool:
        """True if the bridge starts its own NATS server."""
        return self._embeds("nats")

    @property
    def bootstrap_servers(self) -> str:
        """`host:port,…` of the Kafka in use, embedded or not."""
        return self.kafka.bootstrap_servers or f"127.0.0.1:{self.embedded.kafka_port}"

    @property
    def own_topics(self) -> frozenset[str]:
        """The topics of the bridge itself: no source reads them, no header can choose one as a destination."""
        state = (self.journal.topic, self.journal.state_topic)
        return frozenset((*state, *self.letter_topics, *(sink.topic for sink in self.sinks)))

    @property
    def letter_topic(self) -> str:
        """The topic of dead letters: `routing.dead-letter-topic`, else one of the bridge's own beside the journal."""
        return self.routing.dead_letter_topic or set_aside_topic(self.journal.topic)

    @property
    def letter_topics(self) -> tuple[str, str, str]:
        """The topic of dead letters, its audit and its quarantine."""
        return self.letter_topic, audit_topic(self.letter_topic), quarantine_topic(self.letter_topic)

    @property
    def router_dead_letters(self) -> bool:
        """True if the router may write dead letters."""
        routed = any(route.on_soft_failure is Policy.DEAD_LETTER for route in self.routes)
        return routed or self.routing.dead_letter_topic is not None

    @property
    def brokers(self) -> tuple[BrokerConfig, ...]:
        """All sources and sinks."""
        return (*self.sources, *self.sinks)

    @property
    def own_routes(self) -> tuple[Route, ...]:
        """The routes of the file, without those that the bridge added."""
        return tuple(route for route in self.routes if not route.added)

    def url(self, broker: BrokerConfig) -> str:
        """Returns the URL that a source or sink connects to, embedded broker or not, or that it listens on."""
        if broker.listen:
            return broker.listen
        if broker.type.own_cluster:
            return f"kafka://{self.bootstrap_servers}"
        if broker.type.in_folders:
            return f"{broker.type}://{self.root(broker)}"
        return broker.url or broker.embedded_url(self.embedded.ports)

    def root(self, broker: BrokerConfig) -> Path:
        """Returns the folder of the messages of a source or sink whose system keeps them in files."""
        return broker.folder or self.embedded.data / broker.type.name

    def sink_beside(self, source: str) -> SinkConfig | None:
        """Returns the sink that gives to the broker from which a source takes; None if there is no such sink or source.

        Replies that a sink received come from its own broker: their source is called `SINK.replies`.
        """
        own = next((sink for sink in self.sinks if source == f"{sink.name}.replies"), None)
        found = own or next((each for each in self.sources if each.name == source), None)
        if found is None:
            return None
        return next((s for s in self.sinks if s.type is found.type and self.url(s) == self.url(found)), None)

    def _embeds(self, server: str) -> bool:
        used = (each.type.server for each in self.brokers if each.url is None and each.listen is None)
        return self.embedded.mode is not Embedded.OFF and any(each is not None and each.name == server for each in used)
