"""The settings of sources and sinks in a configuration; part of `routes.model`."""

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
    "FileWatch",
    "MessageType",
    "Processed",
    "SinkConfig",
    "SourceConfig",
    "WireFormat",
]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """Settings that sources and sinks share: a connection to a broker."""

    name: str
    type: System
    url: str | None = None
    """URL of the broker; None: the embedded broker of that type."""
    listen: str | None = None
    """AMQP: URL on which the bridge itself listens for clients, in place of connecting to a broker."""
    workers: int = 1
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    """NATS: a login without a user name."""
    credentials: Path | None = None
    """NATS: a file with a signed login (JWT and seed)."""
    client_id: str | None = None
    virtual_host: str | None = None
    """STOMP, AMQP: name of the broker's virtual host; None: the one named like the host of the URL."""
    heartbeat_seconds: float = 10.0
    max_clients: int = 500
    """AMQP listener: greatest number of connections at a time."""
    transaction_timeout_seconds: float = 120.0
    """AMQP listener: greatest time from the first message of a client's transaction to its end."""
    tls_ca: Path | None = None
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    tls_verify: bool = True
    root: Path | None = None
    """Dropboxes: the folder that contains them; None: one in the data folder of the embedded brokers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceConfig(BrokerConfig):
    """`source.<name>.*`: one connection to a broker from which messages are taken."""

    destinations: tuple[str, ...]
    """Destinations in the order of the file. STOMP, AMQP, dropbox: `queue:NAME` or `topic:NAME`. NATS: subjects,
    wildcards allowed. Kafka: regular expressions of topics."""
    selector: str | None = None
    """JMS selector that the broker applies."""
    subscription: str | None = None
    """Name of the durable subscription on topics; None: not durable."""
    watch: FileWatch = FileWatch.INOTIFY
    scan_interval_seconds: float = 1.0
    processed: Processed = Processed.KEEP
    acknowledge: Acknowledge = Acknowledge.INDIVIDUAL
    format: WireFormat = WireFormat.AUTO
    stream: str | None = None
    """NATS: the JetStream stream that is read; None: a plain subscription, which gets only messages sent while it
    exists."""
    consumer: str | None = None
    """Name of the durable consumer of a NATS stream, or of the group of a NATS subscription or of Kafka; None: made of
    bridge and source."""
    address: Template | None = None
    """Kafka: template of the destination that messages are said to come from, `queue:` or `topic:` included."""
    message_type: MessageType = MessageType.AUTO
    hops: int = 0
    """Kafka: number of times that a record may have passed through this bridge before."""
    transformers: Transformers = field(default_factory=Transformers)
    """AMQP: transformers of AMQP messages to JMS messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkConfig(BrokerConfig):
    """`sink.<name>.*`: one connection to a broker to which messages are given."""

    topic: str
    """The Kafka topic between the router and this sink."""
    format: WireFormat = WireFormat.HEADERS
    stream: bool = False
    """NATS: whether each published message has to be stored, and confirmed, by a JetStream stream."""
    reply_to: str | None = None
    """Destination at which the bridge receives replies to requests, to take them back to the asker; None: no
    replies."""
    reply_timeout_seconds: float = 30.0
    transformers: Transformers = field(default_factory=Transformers)
    """AMQP: transformers of JMS messages to AMQP messages."""
