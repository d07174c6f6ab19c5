"""Settings of Kafka sources and sinks, each field with its key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from engine.kafka.login_checks import ClientKeys, is_file
from engine.kafka.security import SECRET_FILES
from routes.keys.addresses import FROM, HOST_PORTS, TOPIC
from routes.keys.table import key
from routes.keys.values import ANY_TEXT, choice, whole
from routes.systems import Addresses, BrokerConfig, SinkConfig, SourceConfig, consumer
from routes.targets import KAFKAS_OWN
from routes.targets import TOPIC as TOPIC_NAME

if TYPE_CHECKING:
    from routes.kafka_access import KafkaAccess
    from routes.keys.settings import Settings
    from routes.targets import Template

__all__ = ["ADDRESSES", "KafkaClusterConfig", "KafkaSinkConfig", "KafkaSourceConfig", "MessageType", "client_keys"]

ADDRESSES = Addresses(TOPIC_NAME.pattern, "a topic, as in other:orders", KAFKAS_OWN)
"""Addresses of sinks."""
_TOLD = {
    "security.": ("`security.protocol` of the login", "security.protocol=SASL_SSL"),
    "sasl.": ("mechanism and credentials of the login", "sasl.mechanism=SCRAM-SHA-512"),
    "ssl.": ("certificates of the login", "ssl.ca.location=tls/other.pem"),
    "https.": ("certificates of the server that gives tokens", "https.ca.location=tls/issuer.pem"),
}
"""Description and example of each of `routes.kafka_access.LOGIN_PREFIXES`."""


def _login(prefix: str) -> Any:
    """Declares the keys of a login that begin with a prefix; the field has their values by the names of Kafka's."""
    about, example = _TOLD[prefix]

    def made(value: Mapping[str, str], settings: Settings, _: str) -> Mapping[str, str]:
        paths = {rest: str(settings.base / text) for rest, text in value.items() if is_file(rest)}
        return MappingProxyType({prefix + rest: text for rest, text in {**value, **paths}.items()})

    return key(
        f"{prefix}*",
        ANY_TEXT,
        f"Any of Kafka's settings for {about} at `bootstrap.servers`, as [`kafka.{prefix}*`](#login-and-tls).",
        example=example,
        made=made,
        factory=lambda: MappingProxyType({}),
    )


class MessageType(StrEnum):
    """Kinds of JMS message that a Kafka source makes of a record's value."""

    AUTO = "auto"
    """The kind that the record declares, if a bridge wrote it; else text if the value is UTF-8."""
    TEXT = "TEXT"
    BYTES = "BYTES"


def client_keys(settings: Settings, section: str, name: str) -> ClientKeys:
    """Returns the settings of the login that a source or sink (`section`) of that name has in a file."""
    begin = f"{section}.NAME."
    rows = {f"{begin}{prefix}*": prefix for prefix in _TOLD}
    given = {prefix + each.rest: each for row, prefix in rows.items() for each in settings.open(row, name)}
    return ClientKeys(f"{section}.{name}.", given)


@dataclass(frozen=True, kw_only=True)
class KafkaClusterConfig(BrokerConfig):
    """Settings of a connection to a Kafka cluster: that of the bridge, or another one."""

    bootstrap_servers: str | None = key(
        "bootstrap.servers",
        HOST_PORTS,
        "Addresses of the brokers of another Kafka cluster.",
        default_note="the bridge's own Kafka, `kafka.bootstrap.servers`",
        example="kafka.other.example:9092",
    )
    """None: the cluster of the bridge."""
    security: Mapping[str, str] = _login("security.")
    sasl: Mapping[str, str] = _login("sasl.")
    ssl: Mapping[str, str] = _login("ssl.")
    https: Mapping[str, str] = _login("https.")

    @property
    def in_own_cluster(self) -> bool:
        """See `BrokerConfig`."""
        return self.bootstrap_servers is None

    @property
    def login(self) -> Mapping[str, str]:
        """The settings of the login to the other cluster, by the names of Kafka's."""
        return {**self.security, **self.sasl, **self.ssl, **self.https}

    @property
    def secret_files(self) -> tuple[Path, ...]:
        """See `BrokerConfig`."""
        return tuple(Path(self.login[name]) for name in SECRET_FILES if name in self.login)

    def embedded_url(self, ports: Mapping[str, int]) -> str:
        """Returns the other cluster."""
        return f"kafka://{self.bootstrap_servers}"

    def access(self, own: KafkaAccess) -> KafkaAccess:
        """Returns the access to the cluster; `own` is that to the cluster of the bridge."""
        if self.bootstrap_servers is None:
            return own
        section = "source" if isinstance(self, SourceConfig) else "sink"
        return own.elsewhere(self.bootstrap_servers, self.login, f"{section}.{self.name}.")


@dataclass(frozen=True, kw_only=True)
class KafkaSourceConfig(KafkaClusterConfig, SourceConfig):
    """Settings of a Kafka source; destinations are regular expressions of topics."""

    consumer: str | None = consumer()
    """Name of the group of consumers; None: made of bridge and source."""
    address: Template = key(
        "address",
        FROM,
        "Address that the messages of a Kafka topic get as `msg.address` and JMSDestination: a topic unless it "
        "begins with `queue:`. `${topic}` is the Kafka topic, `${msg.header.NAME}` the text of a header.",
        default="kafka.${topic}",
        example="queue:${topic}",
        template=True,
    )
    """Template of the destination that messages are said to come from, `queue:` or `topic:` included."""
    message_type: MessageType = key(
        "message.type",
        choice(MessageType, any_case=True),
        "Body type of a record's value. `auto`: the type that the record states, if a bridge wrote it, else text "
        "where the value is UTF-8. With `TEXT`, a value that is not UTF-8 fails softly.",
        default="auto",
    )
    hops: int = key(
        "hops",
        whole(0, 100),
        "Number of times that a record may have come through this bridge before. With `0`, records that this bridge "
        "has published itself are not routed again, so that nothing goes round in circles; `1` lets a message go "
        "from JMS to Kafka and back.",
        default="0",
    )
    """Number of times that a record may have passed through this bridge before."""


@dataclass(frozen=True, kw_only=True)
class KafkaSinkConfig(KafkaClusterConfig, SinkConfig):
    """Settings of a sink for another Kafka cluster."""

    position_topic: str = key(
        "position-topic",
        TOPIC,
        "Topic at the other cluster in which the sink keeps its position, made when missing (compacted). Each "
        "transaction moves that position with its messages, so none is sent twice. Several sinks may share it.",
        default="jms-bridge.positions",
    )
