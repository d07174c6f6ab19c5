"""The field table: every key of `jms-bridge.properties`. Parsing, lint, help and docs/configuration.md use it.

The keys of sources and sinks are declared in the fields of their settings (`routes.systems`, and each system's folder).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from routes.config.pattern import DEFAULT_KEY_PATTERN, KEY_PATTERN
from routes.keys.addresses import ENDPOINT, HOST_PORT, HOST_PORTS, TARGET, TOPIC
from routes.keys.language import KEY_HEADER, PREDICATE
from routes.keys.table import Field, Table, rows_of
from routes.keys.values import (
    ANY_TEXT,
    CREATE_TOPICS,
    FLAG,
    NAME,
    PATH,
    RATIO,
    REPLICATION,
    RETENTION,
    TEXT,
    TOKEN,
    choice,
    duration,
    size,
    whole,
)
from routes.model import (
    BodyConversion,
    Embedded,
    HeaderStyle,
    NonDurable,
    Policy,
    RouterMode,
    Unmatched,
)
from routes.systems import SinkConfig, SourceConfig, System, all_systems
from routes.targets import state_topic

if TYPE_CHECKING:
    from routes.keys.settings import Settings

__all__ = ["FIELDS", "sections"]

_SECTIONS = {
    "bridge": "The bridge itself.",
    "routes": "Which message goes where. NAME is yours to choose. The first route that takes a message keeps it; "
    "routes are tried in the order in which their NAMEs first appear in the file. A key repeated further down changes "
    "its value, not the place of its route.",
    "routing": "What holds for all routes.",
    "replies": "Replies to requests that went through the bridge: [requests.md](requests.md).",
    "source": "Where messages come from. NAME is yours to choose; each source is a connection of its own.",
    "sink": "Where messages go beside Kafka. NAME is yours to choose; `out.topic` names a sink by it, or by its type "
    "if there is one of that type. The router writes its messages into a topic of its own, from where it takes them.",
    "kafka": "Settings of the Kafka clients, by the names of Kafka's own (Java) clients. What the bridge's other "
    "client, librdkafka, calls differently is translated; what it does not have is left out there. A value that one of "
    "the two refuses is a fault.",
    "journal": "The topic that keeps every message before its source is told that the bridge has it.",
    "router": "How Spark reads the journal and writes the destinations.",
    "spark": "Settings of the Spark session.",
    "http": "The [status page](status-page.md), metrics and health. `/health` is open to everybody, so that probes "
    "need no login, and says only that the "
    "bridge is alive, whether it leads and how many dead letters are open; with a login configured all other pages ask "
    "for it.",
    "reload": "Taking a changed configuration without a restart: "
    "[operations](operations.md#changing-the-configuration). SIGHUP does it, too.",
    "tracing": "The traces of OpenTelemetry that messages belong to: [tracing.md](tracing.md).",
    "embedded": "The brokers that come with the bridge, for a first look and for tests.",
}
"""The first segments of keys in the order of the documentation, each with a description; those of systems come behind
the sinks."""
_AFTER = "sink"

_PORT = whole(1, 65535)


_BATCH_INTERVAL_SECONDS = 1.0
_REALTIME_INTERVAL_SECONDS = 120.0


def _interval(settings: Settings, _: str) -> float:
    realtime = settings.get("router.mode") is RouterMode.REALTIME
    return _REALTIME_INTERVAL_SECONDS if realtime else _BATCH_INTERVAL_SECONDS


_BEFORE: tuple[Field, ...] = (
    Field(
        "bridge.id",
        NAME,
        "Name of this bridge, written into the header `jmsbridge.origin` of all it routes. A message that carries "
        "it already is not routed again, so two bridges need two names.",
        example="bridge-1",
        required=True,
    ),
    Field(
        "routes.NAME.name",
        TEXT,
        "Name of the route in metrics, logs and dead letters; unique.",
        default_note="NAME",
        example="orders",
        inherited=lambda _, name: name,
    ),
    Field(
        "routes.NAME.in.include",
        PREDICATE,
        "Which messages the route takes.",
        example="msg.address==orders",
        required=True,
    ),
    Field(
        "routes.NAME.in.exclude",
        PREDICATE,
        "Which of these it leaves to the routes after it.",
        example="JMSType = 'test'",
    ),
    Field(
        "routes.NAME.out.topic",
        TARGET,
        "Where they go: a Kafka topic, which has to exist (`kafka:orders` and `orders` are the same), or a "
        "destination of a sink, `SINK:ADDRESS`. In both `${msg.header.NAME}` is the text of a header and "
        "`${msg.address}` the name of the queue or topic; a message without it fails softly.",
        example="nats:orders.${msg.header.region}",
        required=True,
        template=True,
    ),
    Field(
        "routes.NAME.conv.key",
        KEY_HEADER,
        "The header whose text or number becomes the record key, in any spelling a predicate knows. A message "
        "without it, or with one that `routing.key-pattern` does not match, fails softly.",
        default_note="the message id",
        example="msg.header.CorrelationId",
        aliases=("routes.NAME.map.key",),
    ),
    Field(
        "routes.NAME.conv.body",
        choice(BodyConversion),
        "Bodies: `as-is` takes text and bytes and lets others fail softly, `json` also takes maps, streams and "
        "objects that the source could read, as JSON, `any` every message, a serialized Java object byte for byte.",
        default="as-is",
    ),
    Field(
        "routes.NAME.on-soft-failure",
        choice(Policy),
        "The policy of this route alone.",
        default_note="`routing.on-soft-failure`",
        example="skip",
        inherited=lambda settings, _: settings.get("routing.on-soft-failure"),
    ),
    Field(
        "routing.dead-letter-topic",
        TOPIC,
        "Topic for what the policy `dead-letter` sets aside, and for messages that a source or a sink cannot pass "
        "on, unless their policy is `skip`. The bridge stops when it cannot write there.",
        default_note="`<journal.topic>.set-aside`, created when missing; the policy `dead-letter` needs a name",
        example="jms-bridge.dead-letter",
        aliases=("routing.dead-letter.topic",),
    ),
    Field(
        "routing.on-soft-failure",
        choice(Policy),
        "What happens to a message whose key or body cannot be used: stop the bridge, log and skip the message, or "
        "log and dead-letter it. A message that its source cannot read, or that the system behind a sink refuses, "
        "never stops the bridge: with `stop` it becomes a dead letter.",
        default="stop",
    ),
    Field(
        "routing.on-unmatched",
        choice(Unmatched),
        "What happens to a message that no route takes. It is counted either way.",
        default="skip",
    ),
    Field(
        "routing.max-replays",
        whole(1, 1000),
        "How often a dead letter is replayed: a message that fails again after so many replays goes into "
        "`<dead-letter topic>.quarantine` instead.",
        default="3",
    ),
    Field(
        "routing.headers",
        choice(HeaderStyle),
        "How JMS headers are spelt on records: `jms.JMSCorrelationID` in text, `jms.<type>.<name>` in binary, or "
        "`jms.CorrelationId` in text.",
        default="text",
    ),
    Field(
        "routing.non-durable",
        choice(NonDurable),
        "Whether messages sent as NON_PERSISTENT are routed; dropped ones are counted.",
        default="propagate",
    ),
    Field(
        "routing.key-pattern",
        KEY_PATTERN,
        "What the whole of a key taken from a header has to match.",
        default=DEFAULT_KEY_PATTERN,
        default_note="[see below](#keys-of-records)",
        example="[A-Z]+-[0-9]+",
    ),
    Field(
        "routing.create-topics",
        CREATE_TOPICS,
        "Whether missing destination topics, and those that a Kafka source names in full, "
        "are created; `auto`: only on the embedded Kafka.",
        default="auto",
    ),
    Field(
        "replies.conv.body",
        choice(BodyConversion),
        "Bodies of replies that the bridge takes back to requesters, as `routes.NAME.conv.body`. To AMQP every "
        "body goes as it is.",
        default="json",
    ),
    Field(
        "replies.on-soft-failure",
        choice(Unmatched),
        "What happens to a reply that cannot be routed to its requester: log and skip it, or log and dead-letter it.",
        default="dead-letter",
    ),
)
_BEHIND: tuple[Field, ...] = (
    Field(
        "kafka.bootstrap.servers",
        HOST_PORTS,
        "Where the brokers are.",
        default_note="the embedded Kafka",
        example="127.0.0.1:9092",
    ),
    Field(
        "kafka.producer.*",
        ANY_TEXT,
        "Any producer setting, for producers only.",
        example="kafka.producer.compression.type=lz4",
    ),
    Field(
        "kafka.consumer.*",
        ANY_TEXT,
        "Any consumer setting, for consumers only.",
        example="kafka.consumer.fetch.max.wait.ms=50",
    ),
    Field("kafka.*", ANY_TEXT, "Any setting, for all clients.", example="kafka.security.protocol=SASL_SSL"),
    Field("journal.topic", TOPIC, "Its name. Created when missing.", default="jms-bridge.journal"),
    Field(
        "journal.state-topic",
        TOPIC,
        "The topic beside it in which bridges of one `bridge.id` agree on who leads, and the router notes its "
        "place. It has one partition and is compacted. Created when missing.",
        default_note="`<journal.topic>.state`",
        inherited=lambda settings, _: state_topic(settings.get("journal.topic")),
        example="jms-bridge.state",
    ),
    Field(
        "journal.partitions",
        whole(1, 1000),
        "Partitions at creation: how many messages are routed side by side.",
        default="4",
    ),
    Field(
        "journal.replication",
        REPLICATION,
        "Copies of each message at creation; `broker`: as the cluster has it.",
        default="broker",
    ),
    Field("journal.retention", RETENTION, "How long messages are kept, routed or not; at creation.", default="7d"),
    Field(
        "journal.max-message-bytes",
        size("64KiB", "512MiB"),
        "The largest message that is taken in, with its headers.",
        default="8MiB",
    ),
    Field(
        "router.mode",
        choice(RouterMode),
        "Each message as it comes, or in batches, `router.interval` apart.",
        default="realtime",
    ),
    Field(
        "router.interval",
        duration("0s", "1h"),
        "In real-time mode, the time between two commits: what is compared with the outputs after a crash; "
        "each commit holds messages up for some tenths of a second. In batch mode, the time between two batches.",
        default_note="2m; 1s in batch mode",
        inherited=_interval,
        example="30s",
    ),
    Field(
        "router.checkpoint",
        PATH,
        "Directory that keeps the router's place. A relative path begins at this file.",
        default="var/checkpoint",
    ),
    Field(
        "router.outage-timeout",
        duration("1s", "7d"),
        "How long Kafka may be gone before the bridge stops. An outage of any other system stops only its own "
        "source or sink, which tries again until it is back.",
        default="5m",
    ),
    Field(
        "spark.*",
        ANY_TEXT,
        "Any Spark setting; `spark.driver.memory`, the heap of the router, is `2g` without one, and `spark.master` "
        "can only be `local[N]`, with two task slots more than the journal has partitions.",
        example="spark.driver.memory=4g",
    ),
    Field(
        "http.address",
        HOST_PORT,
        "Where the status page, `/metrics`, `/health` and `/ready` are served. Where other machines can reach it, "
        "a login and TLS are demanded.",
        default="127.0.0.1:8480",
    ),
    Field(
        "http.metrics-address",
        HOST_PORT,
        "Where `/metrics`, `/health` and `/ready` are served as well, alone, without a login and TLS: for probes "
        "and Prometheus. Where other machines can reach it, `http.insecure=true` is demanded.",
        example="0.0.0.0:8481",
    ),
    Field("http.token", TOKEN, "Login by a token (`Authorization: Bearer`).", example="${file:metrics.token}"),
    Field("http.username", TEXT, "Login by a name and a password, as browsers ask for.", example="prometheus"),
    Field("http.password", TEXT, "Its password.", example="${env:METRICS_PASSWORD}"),
    Field("http.tls.certificate", PATH, "Certificate (PEM) to show; served over TLS then.", example="tls/http.pem"),
    Field("http.tls.key", PATH, "Its private key (PEM, not encrypted).", example="tls/http.key"),
    Field(
        "http.insecure",
        FLAG,
        "`true` allows `http.address` without TLS, never without a login, and `http.metrics-address` where other "
        "machines can reach them: in a container whose network is closed, or behind a proxy that has TLS.",
        default="false",
    ),
    Field(
        "reload.watch",
        FLAG,
        "`true`: a running bridge reads this file again when it has changed.",
        default="false",
    ),
    Field(
        "tracing.propagate",
        FLAG,
        "Whether a record has the valid trace context of its message (`traceparent`, `tracestate`) in headers of "
        "these names, where Kafka's clients look for it, beside the JMS properties; and whether such headers of "
        "Kafka and NATS stand before other properties of these names.",
        default="true",
    ),
    Field(
        "tracing.endpoint",
        ENDPOINT,
        "Where spans of sources and sinks are sent, OTLP over HTTP; without a path it is `/v1/traces`. Needs the "
        "packages of the [extra `tracing`](tracing.md#spans).",
        example="http://127.0.0.1:4318",
    ),
    Field(
        "tracing.sample-ratio",
        RATIO,
        "How many of the traces that begin in this bridge are recorded, from 0 to 1. A message that belongs to one "
        "is recorded if that is.",
        default="1",
        example="0.01",
    ),
    Field(
        "embedded",
        choice(Embedded),
        "`auto`: Kafka is started without `kafka.bootstrap.servers`, Artemis and NATS for sources and sinks of "
        "their type without `url`.",
        default="auto",
    ),
    Field("embedded.kafka.port", _PORT, "Port of the embedded Kafka.", default="9092"),
    Field("embedded.artemis.port", _PORT, "Port of the embedded Artemis for JMS clients (core).", default="61616"),
    Field("embedded.stomp.port", _PORT, "Port of the embedded Artemis for STOMP.", default="61613"),
    Field("embedded.amqp.port", _PORT, "Port of the embedded Artemis for AMQP.", default="5672"),
    Field("embedded.nats.port", _PORT, "Port of the embedded NATS server.", default="4222"),
    Field(
        "embedded.data",
        PATH,
        "Directory of what they store, and of every bridge's logs and locks. A relative path begins at this file.",
        default="var",
    ),
)


def sections() -> dict[str, str]:
    """Returns the first segments of keys in the order of the documentation, each with a description."""
    found: dict[str, str] = {}
    for section, text in _SECTIONS.items():
        found[section] = text
        if section == _AFTER:
            found |= {name: about for system in all_systems() for name, about in system.sections.items()}
    return found


def _rows() -> tuple[Field, ...]:
    return _rows_of(all_systems())


@cache
def _rows_of(systems: tuple[System, ...]) -> tuple[Field, ...]:
    sources = [(system.source, system.name) for system in systems if system.source]
    sinks = [(system.sink, system.name) for system in systems if system.sink]
    return (
        *_BEFORE,
        *rows_of("source.NAME.", [(SourceConfig, ""), *sources]),
        *rows_of("sink.NAME.", [(SinkConfig, ""), *sinks]),
        *(row for system in systems for row in system.rows),
        *_BEHIND,
    )


FIELDS = Table(_rows)
