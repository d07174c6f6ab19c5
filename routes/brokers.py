"""What a configuration says of sources and sinks, once read; part of `routes.model`."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from routes.targets import System
from routes.transformers import Transformers

if TYPE_CHECKING:
    from routes.targets import Template

__all__ = [
    "Acknowledge",
    "BrokerConfig",
    "MessageType",
    "Processed",
    "SinkConfig",
    "SourceConfig",
    "Watch",
    "WireFormat",
]


class WireFormat(StrEnum):
    """How a NATS message carries headers, see docs/connectors/nats.md."""

    AUTO = "auto"
    """Only to read: a frame where the payload begins like one, else NATS' own headers."""
    HEADERS = "headers"
    JSON = "json"
    TYPED = "typed"
    """The typed frames of nats-jms-bridge 0.3.0 to 0.23.0."""
    TYPED_1_0 = "typed-1.0"
    """Those of its releases 0.24.1 to 1.0.4, which have a correlation id and other codes of names."""
    RAW = "raw"


class Acknowledge(StrEnum):
    """How a STOMP source tells the broker what the journal has: each message, or all up to one."""

    INDIVIDUAL = "individual"
    CUMULATIVE = "cumulative"


class MessageType(StrEnum):
    """What a Kafka source makes of a record's value."""

    AUTO = "auto"
    """What the record says, if a bridge wrote it; else text where the value is UTF-8."""
    TEXT = "TEXT"
    BYTES = "BYTES"


class Watch(StrEnum):
    """How a dropbox source notices new files: the system tells, or it looks now and then."""

    INOTIFY = "inotify"
    SCAN = "scan"


class Processed(StrEnum):
    """What a dropbox source does with files that the journal has."""

    KEEP = "keep"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """What sources and sinks have in common: a connection to a broker."""

    name: str
    type: System
    url: str | None = None
    """None: the embedded broker of that type."""
    listen: str | None = None
    """AMQP: where the bridge itself listens for clients, in place of connecting to a broker."""
    workers: int = 1
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    """NATS: a login without a user name."""
    credentials: Path | None = None
    """NATS: a file with a signed login (JWT and seed)."""
    client_id: str | None = None
    virtual_host: str | None = None
    """STOMP, AMQP: which of the broker's virtual hosts to use; None: the one named like the host of the URL."""
    heartbeat_seconds: float = 10.0
    max_clients: int = 500
    """AMQP listener: connections at a time."""
    transaction_timeout_seconds: float = 120.0
    """AMQP listener: from the first message of a client's transaction to its end."""
    tls_ca: Path | None = None
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    tls_verify: bool = True
    root: Path | None = None
    """Dropboxes: the folder that they are in; None: the one among what the embedded brokers store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceConfig(BrokerConfig):
    """`source.<name>.*`: one connection to a broker that messages are taken from."""

    destinations: tuple[str, ...]
    """STOMP, AMQP, dropbox: `queue:NAME` or `topic:NAME`. NATS: subjects, wildcards allowed. Kafka: regular expressions
    of topics. In the order of the file."""
    selector: str | None = None
    """JMS selector that the broker applies."""
    subscription: str | None = None
    """Name of the durable subscription on topics; None: not durable."""
    watch: Watch = Watch.INOTIFY
    scan_interval_seconds: float = 1.0
    processed: Processed = Processed.KEEP
    acknowledge: Acknowledge = Acknowledge.INDIVIDUAL
    format: WireFormat = WireFormat.AUTO
    stream: str | None = None
    """NATS: the JetStream stream that is read; None: a subscription, which has only what comes while it is there."""
    consumer: str | None = None
    """Name of the durable consumer of a NATS stream, or of the group of a NATS subscription or of Kafka; None: made of
    bridge and source."""
    address: Template | None = None
    """Kafka: where messages are said to come from, `queue:` or `topic:` included."""
    message_type: MessageType = MessageType.AUTO
    hops: int = 0
    """Kafka: how often a record may have come through this bridge before."""
    transformers: Transformers = field(default_factory=Transformers)
    """AMQP: how messages become JMS messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkConfig(BrokerConfig):
    """`sink.<name>.*`: one connection to a broker that messages are given to."""

    topic: str
    """The Kafka topic between the router and this sink."""
    format: WireFormat = WireFormat.HEADERS
    stream: bool = False
    """NATS: whether what is published has to be kept by a JetStream stream, which then confirms each message."""
    reply_to: str | None = None
    """Where the other side sends replies to requests, for the bridge to take them back to who asked; None: nowhere."""
    reply_timeout_seconds: float = 30.0
    transformers: Transformers = field(default_factory=Transformers)
    """AMQP: how JMS messages become messages of AMQP."""
