"""The values of a configuration: frozen, typed, and passed around by the rest of the project.

No option is passed further inward as text. `routes.config` makes these values from a properties file. Each field
declares the key that it is made of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from routes.kafka_access import KafkaAccess
from routes.keys import table
from routes.keys.addresses import TARGET
from routes.keys.language import KEY_HEADER, PREDICATE
from routes.keys.table import key, part
from routes.keys.values import ANY_TEXT, NAME, PLACE, STRONG_SECRET, TEXT, choice, duration
from routes.sections import (
    BodyConversion,
    Embedded,
    EmbeddedConfig,
    HeaderStyle,
    HttpConfig,
    JournalConfig,
    KafkaConfig,
    NonDurable,
    Policy,
    ReloadConfig,
    RepliesConfig,
    RouterConfig,
    RouterMode,
    RoutingConfig,
    SchemaConfig,
    TopologyConfig,
    TracingConfig,
    Unmatched,
)
from routes.systems import BrokerConfig, SinkConfig, SourceConfig
from routes.targets import audit_topic, quarantine_topic, set_aside_topic

if TYPE_CHECKING:
    from routes.predicate.nodes import Predicate
    from routes.targets import Template

__all__ = [
    "BodyConversion",
    "BrokerConfig",
    "Config",
    "Embedded",
    "EmbeddedConfig",
    "HeaderStyle",
    "HttpConfig",
    "JournalConfig",
    "KafkaConfig",
    "NonDurable",
    "Policy",
    "ReloadConfig",
    "RepliesConfig",
    "Route",
    "RouterConfig",
    "RouterMode",
    "RoutingConfig",
    "SchemaConfig",
    "SinkConfig",
    "SourceConfig",
    "Target",
    "TopologyConfig",
    "TracingConfig",
    "Unmatched",
]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A complete route: `routes.<id>.*` with its predicates parsed and its policy resolved."""

    name: str = table.key(
        "name",
        TEXT,
        "Name of the route in metrics, logs and dead letters; unique.",
        default_note="NAME",
        example="orders",
        inherited=lambda _, name: name,
        value=MISSING,
    )
    include: Predicate = table.key(
        "in.include", PREDICATE, "Messages that the route takes.", example="msg.address==orders", required=True
    )
    exclude: Predicate | None = table.key(
        "in.exclude",
        PREDICATE,
        "Exceptions from `in.include`: messages that the route leaves to the routes after it.",
        example="JMSType = 'test'",
    )
    target: Target = table.key(
        "out.topic",
        TARGET,
        "Destination of the route's messages: a Kafka topic, which has to exist (`kafka:orders` and `orders` are the "
        "same), or a destination of a sink, `SINK:ADDRESS`. In both, `${msg.header.NAME}` is the text of a header "
        "and `${msg.address}` the name of the queue or topic; a message without it fails softly.",
        example="nats:orders.${msg.header.region}",
        required=True,
        template=True,
    )
    key: str | None = table.key(
        "conv.key",
        KEY_HEADER,
        "The header whose text or number becomes the record key, in any spelling a predicate knows. A message "
        "without it, or with one that `routing.key-pattern` does not match, fails softly.",
        default_note="the message id",
        example="msg.header.CorrelationId",
        aliases=("map.key",),
    )
    """JMS field or property that becomes the record key, in JMS spelling. None: JMSMessageID, unchanged; for a sink the
    key of the journal record, which keeps the order of messages that belong together."""
    conversion: BodyConversion = table.key(
        "conv.body",
        choice(BodyConversion),
        "Bodies: `as-is` takes text and bytes and lets others fail softly, `json` also takes maps, streams and "
        "objects that the source could read, as JSON, `any` every message, a serialized Java object byte for byte.",
        default="as-is",
    )
    """Always `ANY` for an AMQP sink, which keeps the kind of each message."""
    on_soft_failure: Policy = table.key(
        "on-soft-failure",
        choice(Policy),
        "Policy of this route alone for soft failures.",
        default_note="`routing.on-soft-failure`",
        example="skip",
        inherited=lambda settings, _: settings.get("routing.on-soft-failure"),
        value=Policy.STOP,
    )
    added: bool = False
    """True if the bridge added the route, for replies to requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A whole configuration, free of faults."""

    path: Path
    bridge_id: str = key(
        "bridge.id",
        NAME,
        "Name of this bridge, written into the header `jmsbridge.origin` of all it routes. A message that carries "
        "it already is not routed again, so two bridges need two names.",
        example="bridge-1",
        required=True,
    )
    secret: str | None = key(
        "bridge.secret",
        STRONG_SECRET,
        "Secret with which the router seals the records and notes that it writes, so that after a crash it believes no "
        "record that others wrote to its topics. Bridges that stand by for each other need the same one; "
        "`jms-bridge doctor` asks for it. At least 32 characters, as from `openssl rand -hex 32`. See security.md.",
        default_note="a random one, made at the first start in `router.checkpoint`",
        example="${env:BRIDGE_SECRET}",
        secret=True,
    )
    kafka: KafkaConfig = part(KafkaConfig)
    journal: JournalConfig = part(JournalConfig)
    router: RouterConfig = part(RouterConfig)
    routing: RoutingConfig = part(RoutingConfig)
    replies: RepliesConfig = part(RepliesConfig)
    routes: tuple[Route, ...]
    sources: tuple[SourceConfig, ...]
    sinks: tuple[SinkConfig, ...]
    topologies: tuple[TopologyConfig, ...]
    topology_states: Path | str | None = key(
        "topologies.state",
        PLACE,
        "Directory of the states of all topologies, each in a folder of its own, or its URI, as for "
        "`router.checkpoint`. On a Spark cluster executors have to reach it.",
        default_note="`topologies` in `embedded.data`",
        example="hdfs://host:8020/topologies",
    )
    function_timeout_seconds: float = key(
        "topologies.function-timeout",
        duration("1s", "1d"),
        "Time that one call of a topology's Python function may take: for a record, a timer or a batch of records. "
        "Then the call is ended, and its record is one that the topology cannot process.",
        default="5m",
    )
    schema: SchemaConfig = part(SchemaConfig)
    http: HttpConfig = part(HttpConfig)
    embedded: EmbeddedConfig = part(EmbeddedConfig)
    spark: Mapping[str, str] = key(
        "spark.*",
        ANY_TEXT,
        "Any Spark setting; `spark.driver.memory`, the heap of the router, is `2g` without one. `spark.master` is a "
        "cluster, such as `spark://host:7077` (see scaling.md), or `local[N]`, with two task slots more than the "
        "journal has partitions.",
        example="spark.driver.memory=4g",
        made=lambda found, *_: MappingProxyType({f"spark.{name}": value for name, value in found.items()}),
        factory=dict,
    )
    """Settings by their whole names, `spark.` included."""
    reload: ReloadConfig = part(ReloadConfig)
    tracing: TracingConfig = part(TracingConfig)
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
    def topology_folder(self) -> Path | str:
        """Path or URI of the folder of the states of all topologies."""
        return self.topology_states or self.embedded.data / "topologies"

    @property
    def bootstrap_servers(self) -> str:
        """`host:port,…` of the Kafka in use, embedded or not."""
        return self.kafka.bootstrap_servers or f"127.0.0.1:{self.embedded.kafka_port}"

    @property
    def kafka_access(self) -> KafkaAccess:
        """Access to the Kafka in use, embedded or not."""
        return KafkaAccess(
            servers=self.bootstrap_servers,
            client_id=self.bridge_id,
            common=self.kafka.common,
            producer=self.kafka.producer,
            consumer=self.kafka.consumer,
            file=self.path,
            max_message_bytes=self.journal.max_message_bytes,
            outage_timeout_seconds=self.router.outage_timeout_seconds,
            is_embedded=self.embedded_kafka,
        )

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
