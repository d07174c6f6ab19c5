"""The values of a configuration: frozen, typed, and passed around by the rest of the project.

No option is passed further inward as text. `routes.config` makes these values from a properties file. Each field
declares the key that it is made of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from routes.header_edits import HeaderEdits
from routes.kafka_access import KafkaAccess
from routes.keys import table
from routes.keys.addresses import TARGETS
from routes.keys.conversions import BODY_STEPS
from routes.keys.language import BODY_PATHS, KEY_HEADER, PREDICATE
from routes.keys.schemas import SCHEMA
from routes.keys.table import key, named_of, part
from routes.keys.values import FLAG, NAME, STRONG_SECRET, TEXT, choice, size
from routes.predicate.body_format import with_unreadable
from routes.predicate.mask import Mask, MaskMethod
from routes.predicate.nodes import DocumentFormat
from routes.schema_names import SchemaName, SourceSchema, SubjectStrategy
from routes.section_registry import SECTIONS, registered_sections
from routes.sections import (
    BodyConversion,
    Embedded,
    EmbeddedConfig,
    HeaderStyle,
    JournalConfig,
    KafkaConfig,
    NonDurable,
    Policy,
    ReloadConfig,
    RepliesConfig,
    RouterConfig,
    RouterMode,
    RoutingConfig,
    Unmatched,
)
from routes.systems import BrokerConfig, SinkConfig, SourceConfig
from routes.targets import actions_topic, audit_topic, looks_topic, position_topic, quarantine_topic, set_aside_topic

if TYPE_CHECKING:
    from routes.body_steps import BodySteps
    from routes.predicate.nodes import BodyPath, Predicate
    from routes.targets import Template

__all__ = [
    "BodyConversion",
    "BrokerConfig",
    "ClaimCheckConfig",
    "Config",
    "Embedded",
    "EmbeddedConfig",
    "HeaderStyle",
    "HttpConfig",
    "JournalConfig",
    "KafkaConfig",
    "NonDurable",
    "Policy",
    "Publication",
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


T = TypeVar("T")

ClaimCheckConfig: Any
HttpConfig: Any
SchemaConfig: Any
TopologyConfig: Any
TracingConfig: Any
"""Public classes of sections that parts of the engine bring. There, they have types."""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Returns the public class of a section, whose module in the engine is imported at the first use."""
        kinds = [each.settings for each in registered_sections().values() if each.settings] if name in __all__ else []
        for kind in (*kinds, *(named for each in kinds for _, named in named_of(each).values())):
            if kind.__name__ == name:
                return kind
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)


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
    takes_any_body: bool = False
    """True if the sink keeps the kind of each message, so that bodies need no conversion."""

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
    body_format: DocumentFormat | None = table.key(
        "in.body",
        choice(DocumentFormat),
        "Format that the bodies of the route's messages have. A message of another format that the route would take "
        "otherwise fails softly; without this key such a message is left to the routes after this one.",
        example="json",
    )
    schema: SchemaName | None = table.key(
        "in.schema",
        SCHEMA,
        "Schema that the route's bodies have to fit: `json-schema:`, `avro:` or `protobuf:` with a file (`.json`, "
        "`.avsc`, `.desc`) or a subject of the registry, `SUBJECT` or `SUBJECT@VERSION`. A message that does not fit "
        "fails softly. See [schemas](routing.md#schemas).",
        example="json-schema:schemas/order.json",
    )
    """Schema that bodies have to fit; None: any does."""
    goes_on: bool = table.key(
        "in.continue",
        FLAG,
        "`true`: a message that the route takes goes on to the routes after it as well, as if this one had not taken "
        "it.",
        default="false",
    )
    targets: tuple[Target, ...] = table.key(
        "out.topic",
        TARGETS,
        "Destination of the route's messages: a Kafka topic, which has to exist (`kafka:orders` and `orders` are the "
        "same), or a destination of a sink, `SINK:ADDRESS`. In both, `${msg.header.NAME}` is the text of a header, "
        "`${msg.body.NAME}` the value of a field of a JSON body, and `${msg.address}` the name of the queue or topic; "
        "a message without it fails softly. Of several destinations, separated by commas, each gets the message once.",
        example="nats:orders.${msg.header.region}",
        required=True,
        template=True,
    )
    masked: tuple[BodyPath, ...] | None = table.key(
        "out.mask",
        BODY_PATHS,
        "Paths into the route's JSON bodies, separated by commas: the values under them do not leave as they are. A "
        "message whose body cannot be read as JSON fails softly. See [masks](routing.md#masks).",
        example="msg.body.card, msg.body.lines[*].iban",
    )
    mask_method: MaskMethod = table.key(
        "out.mask-with",
        choice(MaskMethod),
        'Kind of the mask: `replace` puts `"***"` in the place of each value, `remove` takes the field or element out, '
        "`hash` puts the HMAC-SHA256 of the value in its place.",
        default="replace",
    )
    mask_secret: str | None = table.key(
        "out.mask-secret",
        STRONG_SECRET,
        "Secret for `out.mask-with=hash`: who does not know the secret cannot find a value by hashing all possible "
        "ones. A reference to the environment or a file; at least 32 characters, as from `openssl rand -hex 32`.",
        example="${env:MASK_SECRET}",
        secret=True,
    )
    steps: BodySteps | None = table.key(
        "out.convert",
        BODY_STEPS,
        "Conversions of the bodies that leave, separated by commas, in this order: `gunzip`, `from CHARSET` (to "
        "UTF-8), `xml-to-json`, `json-to-xml`, `to CHARSET` (from UTF-8), `gzip`. A message whose body cannot be "
        "converted fails softly. See [conversions](routing.md#conversions).",
        example="gunzip, from IBM1047",
    )
    """Conversions of the bodies that leave by this route; None if they leave as they are."""
    written_schema: SchemaName | None = table.key(
        "out.schema",
        SCHEMA,
        "Schema with which bodies leave in Confluent's wire format: `avro:`, `protobuf:` or `json-schema:` with a "
        "subject of the registry, or with a file, which the bridge registers. It is for bodies of JSON, maps, and XML "
        "that `out.convert=xml-to-json` has converted. A body that does not fit fails softly. See "
        "[schemas](routing.md#schemas).",
        example="avro:orders-value",
    )
    """Schema by which bodies are written; None if they leave without one."""
    subjects: SubjectStrategy = table.key(
        "out.subject",
        choice(SubjectStrategy),
        "Subject under which the schema of a file in `out.schema` is registered. `topic`: `TOPIC-value`; `record`: the "
        "full name of the record; `topic-record`: `TOPIC-NAME`.",
        default="topic",
    )
    claim_above: int | None = table.key(
        "out.claim-check-above",
        size("1KiB", "512MiB"),
        "Size of the largest body that leaves in its record. A larger one is kept as a file in `claim-check.folder`, "
        "and the record names the file; sinks put the body back. See [claim checks](routing.md#claim-checks).",
        example="256KiB",
    )
    """Bytes of the largest body that leaves in its record; None: each does."""
    key: str | None = table.key(
        "conv.key",
        KEY_HEADER,
        "The header, or the path into a JSON body (`msg.body.order.id`), whose text or number becomes the record key, "
        "in any spelling a predicate knows. A message without such a text or number, or with one that "
        "`routing.key-pattern` does not match, fails softly.",
        default_note="the message id",
        example="msg.header.CorrelationId",
        aliases=("map.key",),
    )
    """JMS field or property, in JMS spelling, or path into the body that becomes the record key. None: JMSMessageID,
    unchanged; for a sink the key of the journal record, which keeps the order of messages that belong together."""
    conversion: BodyConversion = table.key(
        "conv.body",
        choice(BodyConversion),
        "Bodies that the route publishes: `as-is` takes text and bytes and lets others fail softly; `json` also takes "
        "maps, streams and objects that the source could read, as JSON; `any` takes every message, and leaves a "
        "serialized Java object as it is.",
        default="as-is",
    )
    on_soft_failure: Policy = table.key(
        "on-soft-failure",
        choice(Policy),
        "Policy of this route alone for soft failures.",
        default_note="`routing.on-soft-failure`",
        example="skip",
        inherited=lambda settings, _: settings.get("routing.on-soft-failure"),
        made=lambda value, settings, name: Policy.DEAD_LETTER if settings.get("routes.NAME.paused", name) else value,
        value=Policy.STOP,
    )
    paused: bool = table.key(
        "paused",
        FLAG,
        "`true`: the messages that the route takes are not published but held as dead letters; the bridge replays them "
        "when the route is no longer paused. `jms-bridge pause route:NAME` pauses a route without this line.",
        default="false",
    )
    edits: HeaderEdits = part(HeaderEdits, HeaderEdits())
    added: bool = False
    """True if the bridge added the route, for replies to requests."""

    @property
    def mask(self) -> Mask | None:
        """Mask of the bodies that leave by this route; None if they leave as they are."""
        return Mask(self.masked, self.mask_method, self.mask_secret) if self.masked else None

    @property
    def read_as(self) -> DocumentFormat | None:
        """Format that bodies have, by `in.body` or by the schema that they have to fit; None: any."""
        return self.schema.kind.body_format if self.body_format is None and self.schema else self.body_format

    @property
    def taken(self) -> Predicate:
        """Messages that the route takes, those among them whose body is not of its format."""
        return self.include if self.read_as is None else with_unreadable(self.include, self.read_as)

    @property
    def converts(self) -> bool:
        """True if bodies that leave by this route have another form."""
        return self.steps is not None or self.written_schema is not None

    @property
    def left_kind(self) -> str:
        """Kind of the bodies that leave converted (`engine.message.BodyType`)."""
        return self.steps.kind if self.steps and self.written_schema is None else "bytes"

    @property
    def publications(self) -> tuple[Publication, ...]:
        """Publications of each message that the route takes."""
        return tuple(Publication(self, number, target) for number, target in enumerate(self.targets, 1))


@dataclass(frozen=True, slots=True)
class Publication:
    """Pair of a route and one of its destinations, to which the router publishes a message once."""

    route: Route
    number: int
    """Number of the destination in the route, from 1."""
    target: Target

    @property
    def name(self) -> str:
        """Name in the plan, which no other step of it has: the route, with the destination if there are several."""
        name = f"route {self.route.name}"
        return name if len(self.route.targets) == 1 else f"{name} > {self.target}"

    @property
    def mark(self) -> str:
        """Text of the header `jmsbridge.target`, by which a replay finds the publication again."""
        return f"{self.number} {self.target}"

    @property
    def label(self) -> str:
        """Text of the header `jmsbridge.only`, by which a replayed message goes to this destination alone."""
        return f"{self.number} {self.route.name}"

    @property
    def conversion(self) -> BodyConversion:
        """The kinds of bodies that the destination takes: all of them at a sink that keeps the kind."""
        if self.route.written_schema:
            return BodyConversion.JSON
        return BodyConversion.ANY if self.target.takes_any_body else self.route.conversion

    @property
    def converts_json(self) -> bool:
        """True if steps or the schema of the route also take the JSON of a map, stream or object."""
        steps = self.route.steps
        takes_json = steps is None or steps.takes_json
        return self.route.converts and takes_json and self.conversion is BodyConversion.JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A whole configuration, free of faults."""

    path: Path
    bridge_id: str = key(
        "bridge.id",
        NAME,
        "Name of this bridge, written into the header `jmsbridge.origin` of all messages that it routes. A "
        "message that has the name already is not routed again, so two bridges need two names.",
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
    embedded: EmbeddedConfig = part(EmbeddedConfig)
    reload: ReloadConfig = part(ReloadConfig)
    sections: Mapping[type, object] = field(default_factory=dict)
    """Settings of the sections that parts of the engine bring, by their classes; see `section`."""
    secret_variables: frozenset[str] = frozenset()
    """Names of the environment variables that secrets came from; processes that the bridge starts do not need them."""
    text: str = field(default="", repr=False, compare=False)
    """Text of the file that the configuration was read from, as it was then."""

    def section(self, kind: type[T]) -> T:
        """Returns the settings of a section by their class, which `routes.section_registry` finds."""
        settings = self.sections[kind]
        assert isinstance(settings, kind)
        return settings

    def with_section(self, settings: object) -> Config:
        """Returns the configuration with other settings of a section."""
        return replace(self, sections={**self.sections, type(settings): settings})

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
        journal = self.journal.topic
        audits = (looks_topic(journal), actions_topic(journal))
        own = (journal, self.journal.state_topic, *audits, position_topic(journal))
        return frozenset((*own, *self.letter_topics, *(sink.topic for sink in self.sinks)))

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
    def publications(self) -> tuple[Publication, ...]:
        """The publications of all routes, in their order."""
        return tuple(publication for route in self.routes for publication in route.publications)

    @property
    def has_copies(self) -> bool:
        """True if a message can have several publications."""
        return any(route.goes_on or len(route.targets) > 1 for route in self.routes)

    @property
    def source_schemas(self) -> tuple[SourceSchema, ...]:
        """The schemas of the bare values that sources receive."""
        return tuple(SourceSchema(each.name, each.schema, not each.type.is_jms) for each in self.sources if each.schema)

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
        if broker.in_own_cluster:
            return f"kafka://{self.bootstrap_servers}"
        if broker.type.in_folders:
            return f"{broker.type}://{self.root(broker)}"
        return broker.url or broker.embedded_url(self.embedded.ports)

    def root(self, broker: BrokerConfig) -> Path:
        """Returns the folder of the messages of a source or sink whose system keeps them in files."""
        return broker.folder or self.embedded.data / broker.type.name

    def sink_beside(self, source: str) -> SinkConfig | None:
        """Returns the sink that gives to the broker from which a source takes; None if there is no such sink or source.

        Replies that a sink received come from its own broker.
        """
        own = next((sink for sink in self.sinks if source == sink.reply_source), None)
        found = own or next((each for each in self.sources if each.name == source), None)
        if found is None:
            return None
        return next((s for s in self.sinks if s.type is found.type and self.url(s) == self.url(found)), None)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Returns the settings of a section by its name, for programs that were written before `section`."""
            if name in SECTIONS and (kind := registered_sections()[name].settings):
                return self.section(kind)
            msg = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(msg, name=name, obj=self)

    def _embeds(self, server: str) -> bool:
        used = (each.type.server for each in self.brokers if each.url is None and each.listen is None)
        return self.embedded.mode is not Embedded.OFF and any(each is not None and each.name == server for each in used)
