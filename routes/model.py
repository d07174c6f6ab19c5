"""What a configuration is, once read: frozen values that the rest of the project passes around.

No string option travels further inward than this. `routes.config` makes these from a properties file; the field table
there holds each key's default, unit and description.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from routes.predicate.nodes import Predicate

__all__ = [
    "Config",
    "Embedded",
    "EmbeddedConfig",
    "HeaderStyle",
    "HttpConfig",
    "JournalConfig",
    "KafkaConfig",
    "NonDurable",
    "Policy",
    "Route",
    "RouterConfig",
    "RouterMode",
    "RoutingConfig",
    "SourceConfig",
    "Target",
    "Unmatched",
]


class Policy(StrEnum):
    """What happens to a message that fails softly."""

    STOP = "stop"
    SKIP = "skip"
    DEAD_LETTER = "dead-letter"


class Unmatched(StrEnum):
    """What happens to a message that no route wants."""

    SKIP = "skip"
    DEAD_LETTER = "dead-letter"


class HeaderStyle(StrEnum):
    """How JMS headers are spelt on routed records."""

    TEXT = "text"
    TYPED = "typed"
    SHORT = "short"


class NonDurable(StrEnum):
    """Whether messages sent as NON_PERSISTENT are routed."""

    PROPAGATE = "propagate"
    DROP = "drop"


class RouterMode(StrEnum):
    """How Spark runs the router: records as they come, or in micro-batches."""

    REALTIME = "realtime"
    BATCH = "batch"


class Embedded(StrEnum):
    """Whether Kafka and Artemis are started by the bridge: when nothing else is configured, always, or never."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Target:
    """Where a route's messages go."""

    scheme: str
    """`kafka` is the only one so far."""
    address: str
    """The topic."""


@dataclass(frozen=True, slots=True)
class Route:
    """One route, complete: `routes.<id>.*` with its predicates parsed and its policy resolved."""

    name: str
    include: Predicate
    target: Target
    exclude: Predicate | None = None
    key: str | None = None
    """JMS field or property that becomes the record key, in JMS spelling; None: JMSMessageID, taken as it is."""
    on_soft_failure: Policy = Policy.STOP


@dataclass(frozen=True, slots=True)
class RoutingConfig:
    """`routing.*`: what holds for all routes."""

    dead_letter_topic: str | None = None
    on_soft_failure: Policy = Policy.STOP
    on_unmatched: Unmatched = Unmatched.SKIP
    headers: HeaderStyle = HeaderStyle.TEXT
    non_durable: NonDurable = NonDurable.PROPAGATE
    key_pattern: str = ""
    """Regular expression that the whole key has to match; Java and Python read it alike."""
    create_topics: bool | None = None
    """Whether missing destination topics are created; None: only on the embedded Kafka."""


@dataclass(frozen=True, slots=True)
class JournalConfig:
    """`journal.*`: the durable topic between the sources and the router."""

    topic: str
    partitions: int
    replication: int
    """-1: as the cluster has it."""
    retention_ms: int
    """-1: for ever."""
    max_message_bytes: int


@dataclass(frozen=True, slots=True)
class RouterConfig:
    """`router.*`: how Spark runs it."""

    mode: RouterMode
    interval_seconds: float
    """Real-time mode: between two commits. Batch mode: between two batches."""
    checkpoint: Path
    outage_timeout_seconds: float
    """How long brokers may be gone before the bridge stops."""


@dataclass(frozen=True, slots=True)
class KafkaConfig:
    """`kafka.*`, in the Java clients' spelling; `engine.kafka` translates for librdkafka."""

    bootstrap_servers: str | None
    """None: the embedded Kafka."""
    common: Mapping[str, str] = field(default_factory=dict)
    """`kafka.<name>` without the prefix, `bootstrap.servers` left out."""
    producer: Mapping[str, str] = field(default_factory=dict)
    consumer: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SourceConfig:
    """`source.<name>.*`: one connection to a broker that messages are taken from."""

    name: str
    type: str
    """`stomp` is the only one so far."""
    url: str | None
    """None: the embedded Artemis."""
    destinations: tuple[str, ...]
    """`queue:NAME` or `topic:NAME`, in the order of the file."""
    workers: int = 1
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    selector: str | None = None
    """JMS selector that the broker applies."""
    subscription: str | None = None
    """Name of the durable subscription on topics; None: not durable."""
    client_id: str | None = None
    heartbeat_seconds: float = 10.0
    tls_ca: Path | None = None
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    tls_verify: bool = True


@dataclass(frozen=True, slots=True)
class HttpConfig:
    """`http.*`: where metrics and health are served."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class EmbeddedConfig:
    """`embedded*`: the brokers that come with the bridge."""

    mode: Embedded
    kafka_port: int
    artemis_port: int
    stomp_port: int
    amqp_port: int
    data: Path


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
    http: HttpConfig
    embedded: EmbeddedConfig
    spark: Mapping[str, str] = field(default_factory=dict)

    @property
    def embedded_kafka(self) -> bool:
        """Whether this configuration makes the bridge start its own Kafka."""
        return self.embedded.mode is Embedded.ON or (
            self.embedded.mode is Embedded.AUTO and self.kafka.bootstrap_servers is None
        )

    @property
    def embedded_artemis(self) -> bool:
        """Whether this configuration makes the bridge start its own Artemis."""
        return self.embedded.mode is not Embedded.OFF and any(source.url is None for source in self.sources)

    @property
    def bootstrap_servers(self) -> str:
        """`host:port,…` of the Kafka in use, embedded or not."""
        return self.kafka.bootstrap_servers or f"127.0.0.1:{self.embedded.kafka_port}"
