"""Settings of JMS sources and sinks, each field with its key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from engine.connectors.jms import Identity, JmsSinkConfig, identity, selector
from routes.keys.secrets import is_secret_key
from routes.keys.table import key
from routes.keys.values import ANY_TEXT, FLAG, PATH, TEXT, BadValueError, ValueKind, parse_text, size, whole
from routes.systems import BrokerConfig, SourceConfig, client_id, subscription

if TYPE_CHECKING:
    from routes.keys.settings import Settings

__all__ = ["JNDI_NAME", "JmsClientConfig", "JmsClientSinkConfig", "JmsClientSourceConfig"]

JNDI_NAME = "connection-factory"
"""The key behind `jndi.` that is not a property of the context: the name of the connection factory."""
_LOGIN = re.compile("//[^/@]*@")
_COORDINATES = re.compile(r"[A-Za-z0-9._-]+:[A-Za-z0-9._-]+:[A-Za-z0-9._-]+")


def _parse_paths(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in parse_text(text).split(",") if part.strip())


def _parse_packages(text: str) -> tuple[str, ...]:
    packages = _parse_paths(text)
    for each in packages:
        if not _COORDINATES.fullmatch(each):
            hint = "as in org.apache.activemq:activemq-client:5.18.3; commas separate several"
            raise BadValueError(f"'{each}' is not a Maven package", hint, text.find(each))
    return packages


def _from_base(value: tuple[str, ...] | None, settings: Settings, _: str) -> tuple[str, ...]:
    return tuple(str(settings.base / each) for each in value or ())


@dataclass(frozen=True, kw_only=True)
class JmsClientConfig(BrokerConfig):
    """Settings of a connection by a provider's client jars."""

    class_path: tuple[str, ...] = key(
        "class-path",
        ValueKind("paths", "paths of jars, with commas between them", _parse_paths),
        "The provider's client: jars and folders of classes; `*` stands for any part of a file name. Relative paths "
        "begin at this file.",
        example="/opt/mqm/java/lib/*.jar",
        made=_from_base,
        factory=tuple,
    )
    """Paths of jars, absolute, perhaps with `*`."""
    packages: tuple[str, ...] = key(
        "packages",
        ValueKind("Maven packages", "group:artifact:version, with commas between them", _parse_packages),
        "The provider's client as Maven packages. Maven fetches them, and their dependencies, once into a folder "
        "below `embedded.data`.",
        example="org.apache.activemq:activemq-client:5.18.3",
        made=lambda value, *_: value or (),
        factory=tuple,
    )
    factory: str | None = key(
        "connection-factory",
        TEXT,
        "Class of the provider's connection factory, which has a constructor without arguments.",
        default_note="by JNDI",
        example="com.ibm.mq.jms.MQConnectionFactory",
    )
    properties: Mapping[str, str] = key(
        "connection-factory.*",
        ANY_TEXT,
        "Any property of the connection factory, as its setters name it: `hostName` is set by `setHostName`.",
        example="source.NAME.connection-factory.hostName=mq.example",
        factory=lambda: MappingProxyType({}),
    )
    jndi: Mapping[str, str] = key(
        "jndi.*",
        ANY_TEXT,
        "Any property of JNDI's initial context, such as `java.naming.provider.url`; `jndi.connection-factory` is the "
        "name of the connection factory in it.",
        example="source.NAME.jndi.connection-factory=ConnectionFactory",
        factory=lambda: MappingProxyType({}),
    )
    jndi_destinations: bool = key(
        "jndi-destinations",
        FLAG,
        "`true`: destinations are names in JNDI too, in place of the provider's own names.",
        default="false",
    )
    username: str | None = key("username", TEXT, "User name of the login.", example="bridge")
    password: str | None = key("password", TEXT, "Password of the login.", example="${env:ARTEMIS_PASSWORD}")
    client_id: str | None = client_id()
    trust_store: Path | None = key(
        "tls.trust-store", PATH, "Java key store with the certificates to trust.", example="tls/trust.p12"
    )
    trust_store_password: str | None = key(
        "tls.trust-store-password", TEXT, "Password of the trust store.", example="${env:TRUST}"
    )
    key_store: Path | None = key(
        "tls.key-store", PATH, "Java key store with the bridge's own certificate.", example="tls/bridge.p12"
    )
    key_store_password: str | None = key(
        "tls.key-store-password", TEXT, "Password of the key store.", example="${env:KEYS}"
    )
    heap_bytes: int = key(
        "heap", size("32MiB", "64GiB"), "Memory for objects in the client's process, one for each worker.",
        default="256MiB",
    )  # fmt: skip
    deserialized: str | None = key(
        "deserialized-classes",
        TEXT,
        "Filter (JEP 290) for objects that the client may make of serialised bytes. Messages need no class, "
        "except at RabbitMQ; the JNDI of WebLogic needs `weblogic.**;java.**;!*`.",
        default_note="`!*`, which allows none; for RabbitMQ's client its class of destinations",
        example="weblogic.**;java.**;!*",
    )

    def embedded_url(self, ports: Mapping[str, int]) -> str:
        """Returns a text that is the same for connections to the same broker, without secrets."""
        given = {**self.properties, **{f"jndi.{name}": text for name, text in self.jndi.items()}}
        # Options and logins in URLs may hold secrets.
        shown = {name: _LOGIN.sub("//", text.partition("?")[0]) for name, text in given.items()}
        told = [f"{name}={text}" for name, text in sorted(shown.items()) if not is_secret_key(name)]
        return f"{self.type}://{self.factory or self.jndi.get(JNDI_NAME, '')}{'?' if told else ''}{'&'.join(told)}"

    @property
    def secret_files(self) -> tuple[Path, ...]:
        """See `BrokerConfig`."""
        return () if self.key_store is None else (self.key_store,)


@dataclass(frozen=True, kw_only=True)
class JmsClientSourceConfig(JmsClientConfig, SourceConfig):
    """Settings of a JMS source; destinations are `queue:NAME` or `topic:NAME`."""

    selector: str | None = selector()
    """JMS selector that the provider applies."""
    subscription: str | None = subscription()
    """Name of the durable subscription on topics; None: not durable."""
    identity: Identity = identity()
    shared_subscription: bool = key(
        "shared-subscription",
        FLAG,
        "`true`: all workers share the durable subscription (JMS 2.0). Otherwise worker 1 alone reads topics.",
        default="false",
    )
    batch: int | None = key(
        "batch",
        whole(1, 100_000),
        "Greatest number of messages that are acknowledged together. After a crash up to this number of "
        "messages come again, and are recognised.",
        default_note="4000; with the client of OpenMQ 100, of Solace 200, since their brokers limit transactions",
        example="4000",
    )
    client_acknowledge: bool = key(
        "client-acknowledge",
        FLAG,
        "`true`: messages are acknowledged without transactions, for providers that have none.",
        default="false",
    )


@dataclass(frozen=True, kw_only=True)
class JmsClientSinkConfig(JmsClientConfig, JmsSinkConfig):
    """Settings of a JMS sink."""

    batch: int | None = key(
        "batch",
        whole(1, 500),
        "Greatest number of messages that are sent in one transaction.",
        default_note="500; with the client of Solace 200, since its broker limits transactions",
        example="500",
    )
    duplicate_id: str | None = key(
        "duplicate-id",
        TEXT,
        "Name of the property by which the broker recognises a message that is sent twice.",
        default_note="`_AMQ_DUPL_ID` with the client of Artemis, else none",
        example="_AMQ_DUPL_ID",
    )
