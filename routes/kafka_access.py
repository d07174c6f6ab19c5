"""Access to a Kafka cluster, as its clients need it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

__all__ = ["LOGIN_PREFIXES", "KafkaAccess"]

LOGIN_PREFIXES = ("security.", "sasl.", "ssl.", "https.")
"""Beginnings of the names of those settings with which a client logs in to one cluster."""


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
    keys: str = "kafka."
    """Text before the names of the settings of the login in the keys of the file, for remedies."""

    def elsewhere(self, servers: str, login: Mapping[str, str], keys: str) -> KafkaAccess:
        """Returns the access to another cluster, with a login of its own and otherwise the settings of this one.

        `servers` and `keys` are those of the other cluster, `login` has its settings below `LOGIN_PREFIXES`.
        """
        settings = {name: value for name, value in self.common.items() if not name.startswith(LOGIN_PREFIXES)}
        return replace(self, servers=servers, common={**settings, **login}, is_embedded=False, keys=keys)
