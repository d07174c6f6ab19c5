"""Settings of NATS sources and sinks, each field with its key."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from routes.keys.table import key
from routes.keys.values import FLAG, NAME, PATH, TEXT, choice
from routes.systems import Addresses, NetworkConfig, SinkConfig, SourceConfig, consumer

__all__ = ["ADDRESSES", "NatsConfig", "NatsSinkConfig", "NatsSourceConfig", "WireFormat"]


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


@dataclass(frozen=True, kw_only=True)
class NatsConfig(NetworkConfig):
    """Settings of a connection to a NATS server."""

    token: str | None = key("token", TEXT, "Login by a token alone.", example="${env:NATS_TOKEN}")
    """Login without a user name."""
    credentials: Path | None = key(
        "credentials", PATH, "Login by a credentials file (JWT and seed).", example="nats.creds"
    )
    """File with a signed login (JWT and seed)."""

    @property
    def secret_files(self) -> tuple[Path, ...]:
        """See `BrokerConfig`."""
        files = () if self.credentials is None else (self.credentials,)
        return (*super().secret_files, *files)


@dataclass(frozen=True, kw_only=True)
class NatsSourceConfig(NatsConfig, SourceConfig):
    """Settings of a NATS source; destinations are subjects, wildcards allowed."""

    stream: str | None = key(
        "stream",
        NAME,
        "JetStream stream to read the subjects from; it keeps messages that come while the bridge is down. Without "
        "one, messages are taken from a plain subscription, which gets only those that are published while it exists.",
        default_note="a plain subscription",
        example="ORDERS",
    )
    """The JetStream stream that is read; None: a plain subscription, which gets only messages sent while it exists."""
    consumer: str | None = consumer()
    """Name of the durable consumer of the stream, or of the group of the subscription; None: made of bridge and
    source."""
    format: WireFormat = key(
        "format",
        choice(WireFormat),
        "Form of headers in messages: NATS' own (`headers`), in a frame (`json`; `typed` of nats-jms-bridge up to "
        "0.23, `typed-1.0` from 0.24 on), or none (`raw`). `auto`: in a frame (`json` or `typed`) where the payload "
        "begins like one, else NATS' own.",
        default="auto",
    )


@dataclass(frozen=True, kw_only=True)
class NatsSinkConfig(NatsConfig, SinkConfig):
    """Settings of a NATS sink."""

    format: WireFormat = key(
        "format",
        choice(WireFormat),
        "Form of headers in messages: NATS' own (`headers`), in a frame (`json`; `typed` of nats-jms-bridge up to "
        "0.23, `typed-1.0` from 0.24 on), or none (`raw`). Replies go in the format of their requests.",
        default="headers",
    )
    stream: bool = key(
        "stream",
        FLAG,
        "`true`: a JetStream stream has to take each message, and to leave out those that it has already.",
        default="false",
    )
    """True if each published message has to be stored, and confirmed, by a JetStream stream."""


# Subjects may be written like the topics that messages from there come from. Buckets of values and objects, `$KV`
# and `$O`, belong to applications.
ADDRESSES = Addresses(
    r"(?:(?:queue|topic)[/:])?[^\x00-\x20\x7f.*>]{1,500}(?:\.[^\x00-\x20\x7f.*>]{1,500}){0,100}",
    "a subject without wildcards, as in nats:orders.eu",
    r"(?:(?:queue|topic)[/:])?\$(?!(?:KV|O)\.)",
)
