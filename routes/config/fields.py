"""The field table: every key of `jms-bridge.properties`. Parsing, lint, help and docs/configuration.md use it.

The keys of sources and sinks are declared in the fields of their settings (`routes.systems`, and each system's folder).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from routes.keys.addresses import HOST_PORT, HOST_PORTS, TARGET
from routes.keys.language import KEY_HEADER, PREDICATE
from routes.keys.table import Field, Table, rows_of
from routes.keys.values import (
    ANY_TEXT,
    FLAG,
    NAME,
    PATH,
    TEXT,
    TOKEN,
    choice,
)
from routes.model import (
    BodyConversion,
    EmbeddedConfig,
    JournalConfig,
    Policy,
    ReloadConfig,
    RouterConfig,
    RoutingConfig,
    TracingConfig,
    Unmatched,
)
from routes.systems import SinkConfig, SourceConfig, System, all_systems

if TYPE_CHECKING:
    pass

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
    *rows_of("", [(RoutingConfig, "")]),
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
    *rows_of("", [(JournalConfig, "")]),
    *rows_of("", [(RouterConfig, "")]),
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
    *rows_of("", [(ReloadConfig, "")]),
    *rows_of("", [(TracingConfig, "")]),
    *rows_of("", [(EmbeddedConfig, "")]),
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
