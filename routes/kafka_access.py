"""Access to a Kafka cluster, as its clients need it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["KafkaAccess"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaAccess:
    """Address of a Kafka cluster, and the settings of the clients that connect to it."""

    servers: str
    """`host:port,…` of the brokers, embedded or not."""
    client_id: str
    """Client id where the settings name none."""
    common: Mapping[str, str]
    """Settings of all clients, under the Java client's names."""
    producer: Mapping[str, str]
    """Settings of producers alone; they precede those of all clients."""
    consumer: Mapping[str, str]
    """Settings of consumers alone; they precede those of all clients."""
    file: Path
    """File that the settings are from; relative paths of certificates begin at its folder."""
    max_message_bytes: int
    """Size of the largest message that is written, with its headers."""
    outage_timeout_seconds: float
    """Time for which the cluster may be out of reach before the part that needs it ends."""
    is_embedded: bool = False
    """True if the bridge itself starts the cluster."""
