"""The systems that sources and sinks connect to: the facts that a configuration needs of each, and where each is found.

All that one system needs stands in its own folder: the settings of its sources and sinks, each field with the key that
sets it, and a `System` that describes it. `SYSTEMS` has one line for each system, with the name
of that module, which is loaded when a configuration is read. So this package needs no connector to be imported.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from routes.keys.addresses import DESTINATIONS, REPLY_TO, TOPIC, url, urls
from routes.keys.schemas import SCHEMA
from routes.keys.table import key, secrets_in
from routes.keys.values import FLAG, NAME, PATH, TEXT, BadValueError, ValueKind, duration, one_of, whole
from routes.targets import sink_topic

if TYPE_CHECKING:
    from collections.abc import Iterable

    from routes.keys.settings import Settings
    from routes.schema_names import SchemaName

__all__ = [
    "SYSTEMS",
    "Addresses",
    "BrokerConfig",
    "NetworkConfig",
    "Scheme",
    "ServerTraits",
    "SinkConfig",
    "SourceConfig",
    "System",
    "SystemSection",
    "all_systems",
    "client_id",
    "consumer",
    "schemes_of",
    "subscription",
    "system_named",
]

SYSTEMS: dict[str, str] = {
    "stomp": "engine.connectors.stomp.system",
    "amqp": "engine.connectors.amqp.system",
    "jms": "engine.connectors.jms_client.system",
    "nats": "engine.connectors.nats.system",
    "dropbox": "engine.connectors.dropbox.system",
    "kafka": "engine.connectors.kafka.system",
}
"""The registry: for each `type` of a source or sink the module whose `SYSTEM` describes it, in the order of the
documentation."""


class Scheme(NamedTuple):
    """Scheme of the URLs of a system."""

    name: str
    port: int
    """Port of a URL that names none."""
    is_tls: bool = False


class ServerTraits(NamedTuple):
    """Server that the bridge starts for sources and sinks without a URL."""

    name: str
    """Name of the part of the bridge."""
    title: str
    port_keys: tuple[str, ...]
    """Keys of the ports that it listens on."""


class SystemSection(NamedTuple):
    """Section of the configuration, `<name>.NAME.*`, that belongs to one system alone."""

    name: str
    about: str
    """Description for the page of all keys."""
    kind: type
    """Dataclass whose fields declare the keys behind NAME."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses that one system takes."""

    pattern: str
    """Regular expression that a whole address has to match; Java and Python read it alike."""
    expected: str
    """Description of the addresses, for messages to users."""
    internal: str = "(?!)"
    """Regular expression of the beginnings of addresses that the system's servers use themselves, such as for
    management."""

    @property
    def allowed(self) -> str:
        """Regular expression of whole addresses that a message or its sender may choose.

        Java and Python read it alike.
        """
        return f"(?!{self.internal})(?:{self.pattern})"

    def allow(self, address: str) -> bool:
        """Returns True if a message or its sender may choose an address."""
        return re.fullmatch(self.allowed, address) is not None


class System(str):
    """Description of a kind of system that sources and sinks connect to, as text its name.

    `engine.connectors` adds how the system is reached.
    """

    name: str
    """Value of the key `type`."""
    connection: type[BrokerConfig]
    """Settings that sources and sinks of the system share."""
    source: type[SourceConfig] | None = None
    sink: type[SinkConfig] | None = None
    """Settings of sinks; None: the system needs none."""
    schemes: tuple[Scheme, ...] = ()
    """Schemes of URLs; empty: the system has no URL."""
    server: ServerTraits | None = None
    addresses: Addresses = Addresses("(?!)", "no address")
    """Addresses of sinks, and of replies."""
    is_jms: bool = False
    """True if the system is a JMS broker: its destinations are queues and topics, and go without a scheme."""
    own_cluster: bool = False
    """True if the system is Kafka: that of the bridge itself unless a source or sink names another cluster, and without
    reply addresses of its own."""
    any_body: bool = False
    """True if messages of every kind of body go to it as they are, whatever a route converts."""
    place: tuple[str, str] = ("broker", "url")
    """The word for the place of its messages, and the key that sets it; empty: no key does."""
    in_folders: bool = False
    """True if messages are files in folders of this machine."""
    reply_example: str = "queue:bridge.replies"
    """Example of a place for replies."""
    token_in_address: bool = False
    """True if a reply brings its token as the last word of its address, not as the correlation id."""
    reply_wildcard: str = ""
    """End of the address at which replies with tokens are received."""
    sections: tuple[SystemSection, ...] = ()
    """Sections of the configuration that belong to the system alone."""

    def check(self, settings: Settings, section: str, name: str) -> None:
        """Adds the faults of one source or sink of this system; `section` is `source` or `sink`."""

    def check_sections(self, settings: Settings) -> None:
        """Adds the faults of the sections that belong to the system alone. Called once for each file."""

    def may_be_sent_to(self, address: str) -> bool:
        """Returns True if an address is one of the system, and is not used by its servers themselves."""
        return self.addresses.allow(address)

    def __new__(cls) -> Self:
        """Makes the text, which is the name."""
        return super().__new__(cls, cls.name)


def all_systems() -> tuple[System, ...]:
    """Returns the descriptions of all systems, in the order of the registry."""
    return _load_all(tuple(SYSTEMS.values()))


def system_named(name: str) -> System:
    """Returns the description of a system; raises KeyError if no system has that name."""
    return _load(SYSTEMS[name])


@cache
def _load_all(modules: tuple[str, ...]) -> tuple[System, ...]:
    return tuple(map(_load, modules))


@cache
def _load(module: str) -> System:
    system: System = import_module(module).SYSTEM
    return system


def _type() -> ValueKind:
    names = list(SYSTEMS)

    def parse(text: str) -> System:
        if text not in names:
            near = get_close_matches(text.lower(), names, n=1)
            raise BadValueError(
                f"'{text}' is not a known type", f"did you mean {near[0]}?" if near else f"write {one_of(names)}"
            )
        return system_named(text)

    return ValueKind(" \\| ".join(f"`{name}`" for name in names), one_of(names), parse)


def _url() -> ValueKind:
    return url(_ports())


def _urls() -> ValueKind:
    return urls(_ports())


def _ports() -> Mapping[str, int]:
    """Returns the default port of each scheme."""
    return {scheme.name: scheme.port for system in all_systems() for scheme in system.schemes}


@dataclass(frozen=True, kw_only=True)
class BrokerConfig:
    """Settings that all sources and sinks share. Each system has classes of its own below this one."""

    name: str
    type: System = key("type", _type, "The kind of system.", example="stomp", required=True)
    workers: int = key("workers", whole(1, 64), "Connections that share the work, each a process.", default="1")

    url: str | None = None
    """URL of the broker; None: the embedded broker of that type, or the system has no URL."""
    listen: str | None = None
    """URL on which the bridge itself listens for clients, in place of connecting to a broker."""

    def embedded_url(self, ports: Mapping[str, int]) -> str:
        """Returns the URL of a source or sink that names none; `ports` has the ports of embedded servers by key."""
        return f"{self.type}://"

    @property
    def in_own_cluster(self) -> bool:
        """True if it connects to the Kafka of the bridge itself, and is checked with that."""
        return self.type.own_cluster

    @property
    def folder(self) -> Path | None:
        """Folder of the messages that the configuration names; None: it names none, or messages are elsewhere."""
        return None

    @property
    def certificates(self) -> tuple[Path, ...]:
        """The bridge's own certificates, in PEM files."""
        return ()

    @property
    def authorities(self) -> tuple[Path, ...]:
        """The certificates to trust, in PEM files."""
        return ()

    @property
    def secret_files(self) -> tuple[Path, ...]:
        """Files with keys or logins, which not every user may read."""
        return ()

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values of keys that are never shown."""
        return tuple(secrets_in(self))

    def shared(self) -> dict[str, Any]:
        """Returns the settings of the connection, for another source or sink of the same system."""
        return {each.name: getattr(self, each.name) for each in fields(self.type.connection)}


@dataclass(frozen=True, kw_only=True)
class SourceConfig(BrokerConfig):
    """`source.<name>.*`: one connection to a system from which messages are taken."""

    destinations: tuple[str, ...] = key(
        "destinations",
        DESTINATIONS,
        "Destinations to take messages from. STOMP, AMQP and dropbox: queues and topics. NATS: subjects, with the "
        "wildcards `*` and `>`. Kafka: topics, each a regular expression for whole names; topics of the bridge and "
        "of Kafka itself are left out.",
        example="queue:orders, topic:prices",
        required=True,
    )
    """Destinations in the order of the file, in the spelling of the system."""
    schema: SchemaName | None = key(
        "schema",
        SCHEMA,
        "Schema of the bodies of this source, which are bare values of Avro or Protobuf, without Confluent's wire "
        "format: `avro:` with a file or a subject, `protobuf:` as well, with `#MESSAGE`. Texts of STOMP, AMQP and JMS "
        "stay as they are. See [bare values](routing-language.md#bare-values).",
        example="protobuf:schemas/orders.desc#shop.Order",
    )
    """Schema of bodies, which are bare values; None: bodies say themselves whether they have one."""
    count_waiting: bool = key(
        "count-waiting",
        FLAG,
        "Every ten seconds the first worker asks the system, on a connection of its own, how many messages wait for "
        "the source; `false`: it does not ask.",
        default="true",
    )
    """True if the system is asked how many messages wait."""


@dataclass(frozen=True, kw_only=True)
class SinkConfig(BrokerConfig):
    """`sink.<name>.*`: one connection to a system to which messages are given."""

    topic: str = key(
        "topic",
        TOPIC,
        "Kafka topic between the router and the sink; created when missing, as the journal is.",
        default_note="`jms-bridge.sink.NAME`",
        example="jms-bridge.sink.nats",
        inherited=lambda _, name: sink_topic(name),
    )
    """The Kafka topic between the router and this sink."""
    reply_to: str | None = key(
        "reply-to",
        REPLY_TO,
        "Address to which the other side sends replies, which turns request/reply on: `queue:NAME` for STOMP, AMQP "
        "and dropbox, a subject for NATS. The bridge takes the replies from there to the requester.",
        default_note="requests go out without a reply address",
        example="queue:bridge-1.replies",
    )
    """Destination at which the bridge receives replies to requests, to take them back to the asker; None: no
    replies."""
    reply_timeout_seconds: float = key(
        "reply-timeout",
        duration("10ms", "1d"),
        "Time after which a request without a reply is counted as timed out. A later reply is dropped, as expired.",
        default="30s",
    )

    @property
    def reply_source(self) -> str:
        """Name of the source of the replies that the sink receives."""
        return f"{self.name}.replies"


def client_id() -> Any:
    """Declares the key `client-id`."""
    return key("client-id", NAME, "Client id of the connection.", example="bridge-1")


def backup_urls() -> Any:
    """Declares the key `backup-urls`."""
    return key(
        "backup-urls",
        _urls,
        "URLs of the backups of the broker at `url`, which serve the same messages when it is down. The bridge "
        "connects to the address that answered last, and else to the others in turn.",
        example="stomp://backup.example:61613",
        made=lambda value, *_: value or (),
        factory=tuple,
    )


def subscription(**row: Any) -> Any:
    """Declares the key `subscription` of sources; `row` as for `key`."""
    return key(
        "subscription",
        NAME,
        "Name of a durable subscription: the broker keeps messages that are published to topics while the bridge is "
        "down.",
        default_note="STOMP: not durable; dropbox: NAME",
        example="prices-to-kafka",
        **row,
    )


def consumer() -> Any:
    """Declares the key `consumer` of sources."""
    return key(
        "consumer",
        NAME,
        "Name of the durable consumer of the stream, of the queue group of a plain subscription, or of the group of "
        "Kafka consumers.",
        default_note="`bridge.id` and NAME",
        example="orders-to-kafka",
    )


@dataclass(frozen=True, kw_only=True)
class NetworkConfig(BrokerConfig):
    """Settings of a connection to a server that has a URL and a login."""

    url: str | None = key(
        "url",
        _url,
        "URL of the broker or server; `stomp+ssl` is STOMP over TLS, `amqps` is AMQP over TLS, `tls` is NATS over TLS.",
        default_note="the embedded Artemis, or NATS server",
        example="stomp://127.0.0.1:61613",
    )
    """URL of the broker; None: the embedded broker of that type."""
    username: str | None = key("username", TEXT, "User name of the login.", example="bridge")
    password: str | None = key("password", TEXT, "Password of the login.", example="${env:ARTEMIS_PASSWORD}")
    client_id: str | None = client_id()
    heartbeat_seconds: float = key(
        "heartbeat",
        duration("100ms", "10m"),
        "Interval at which each side shows the other that it is alive.",
        default="10s",
    )
    tls_ca: Path | None = key(
        "tls.ca", PATH, "Certificates (PEM) to trust.", default_note="the system's", example="tls/ca.pem"
    )
    tls_certificate: Path | None = key(
        "tls.certificate", PATH, "The bridge's own certificate (PEM).", example="tls/bridge.pem"
    )
    tls_key: Path | None = key("tls.key", PATH, "Private key of the certificate (PEM).", example="tls/bridge.key")
    tls_verify: bool = key(
        "tls.verify", FLAG, "Verification of the broker's certificate. `false` is for tests.", default="true"
    )

    def embedded_url(self, ports: Mapping[str, int]) -> str:
        """Returns the URL at this machine, with the port `embedded.<type>.port`."""
        return f"{self.type}://127.0.0.1:{ports.get(f'embedded.{self.type}.port', 0)}"

    @property
    def certificates(self) -> tuple[Path, ...]:
        """See `BrokerConfig`."""
        return _given(self.tls_certificate)

    @property
    def authorities(self) -> tuple[Path, ...]:
        """See `BrokerConfig`."""
        return _given(self.tls_ca)

    @property
    def secret_files(self) -> tuple[Path, ...]:
        """See `BrokerConfig`."""
        return _given(self.tls_key)


def _given(*paths: Path | None) -> tuple[Path, ...]:
    return tuple(path for path in paths if path is not None)


def schemes_of(systems: Iterable[System]) -> Mapping[str, Scheme]:
    """Returns the schemes of systems by their names."""
    return {scheme.name: scheme for system in systems for scheme in system.schemes}
