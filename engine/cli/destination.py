"""Destinations of `send`, `receive` and `request`: Kafka topics, and queues, topics or subjects at a broker.

kafka:TOPIC         a topic of the bridge's Kafka
queue:NAME          at a JMS broker, topic:NAME as well
stomp:queue/NAME    the same, as routes spell it; amqp:queue/NAME over AMQP
nats:SUBJECT        at a NATS server
dropbox:queue/NAME  in folders of DropboxMQ, dropbox:topic/NAME as well
NAME:ADDRESS        at the broker of the source or sink of that name
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.connectors.system import Connector, connector
from engine.errors import UsageError
from routes.model import BrokerConfig, SinkConfig, SourceConfig
from routes.systems import SYSTEMS, all_systems, system_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from routes.model import Config
    from routes.systems import System

__all__ = ["Broker", "BrokerDestination", "Username", "broker_destination", "kafka_topic"]

_KAFKA = "kafka"
_JMS = ("queue", "topic")
_OF_MESSAGES = ("format", "stream")
"""Settings of a sink that say how it sends a message."""
_PASSWORD = "JMS_BRIDGE_PASSWORD"  # noqa: S105 - the name of a variable
Broker = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        help="A broker, as stomp://127.0.0.1:61613, amqp://127.0.0.1:5672 or nats://127.0.0.1:4222, or the folder of "
        "dropboxes, as dropbox:///srv/dropbox, instead of the configured one.",
    ),
]
Username = Annotated[
    str | None, typer.Option(help=f"User at that broker; the password is taken from {_PASSWORD}.", metavar="NAME")
]


@dataclass(frozen=True, slots=True)
class BrokerDestination:
    """Destination at a broker, with the connection settings."""

    text: str
    """Text of the destination as the user spelt it."""
    address: str
    """`queue:NAME` or `topic:NAME` at a JMS broker and in folders, a subject at a NATS server."""
    broker: BrokerConfig
    url: str
    configured: bool
    """True if a source, a sink or the command line names the broker; else it is where an embedded one would be."""

    @property
    def system(self) -> Connector[Any, Any, Any]:
        """System of the broker."""
        return connector(self.broker.type)

    def has(self, setting: str) -> bool:
        """Returns True if sinks of the system have a setting."""
        return self.system.sink is not None and any(each.name == setting for each in fields(self.system.sink))

    def reply_address(self, text: str) -> str:
        """Reply address in the spelling of `address`; raises UsageError if the text is not an address."""
        scheme, _, rest = text.partition(":")
        connection = (self.system.name, self.broker.name)
        return _address(self.system, rest if scheme in connection else text, text, wildcards=False)

    def sink(self, who: str, **settings: Any) -> SinkConfig:
        """A sink of its own for the process; a setting of None is as at the configured sink."""
        assert self.system.sink is not None
        given = {name: value for name, value in settings.items() if value is not None}
        if isinstance(self.broker, SinkConfig):
            given = {name: getattr(self.broker, name) for name in _OF_MESSAGES if self.has(name)} | given
        made: SinkConfig = self.system.sink(**_connection(self.broker, who), topic="", **given)
        return made

    def source(self, who: str, address: str | None = None, **settings: Any) -> SourceConfig:
        """A source of its own for the process, which shares no subscription with any other."""
        source = self.system.source
        assert source is not None
        names = {each.name for each in fields(source)}
        given = {name: value for name, value in settings.items() if value is not None}
        if "consumer" in names:
            given["consumer"] = who
        if "format" in names and isinstance(self.broker, SourceConfig):
            given = {"format": getattr(self.broker, "format", None)} | given
        made: SourceConfig = source(**_connection(self.broker, who), destinations=(address or self.address,), **given)
        return made


def kafka_topic(destination: str) -> str | None:
    """The topic of `kafka:TOPIC`; None for any other destination. UsageError without a scheme or a name."""
    scheme, _, name = destination.partition(":")
    if re.search("://.*@", destination):
        msg = (
            f"a URL with a login is not a destination: expected {_expected()}; --url names a broker, --username a user"
        )
        raise UsageError(msg)
    if not scheme or not name:
        msg = f"{destination!r} is not a destination: expected {_expected()}"
        raise UsageError(msg)
    return name if scheme == _KAFKA else None


def broker_destination(
    config: Config, destination: str, url: str | None, username: str | None, *, to_send: bool
) -> BrokerDestination:
    """Finds the broker of a destination; UsageError if the destination or the broker is invalid.

    The broker is that of `url`; else of the source or sink of that name; else of the source that reads this address;
    else of the first source or sink of that type; else the embedded one.
    """
    scheme, _, rest = destination.partition(":")
    named = _named((*config.sinks, *config.sources) if to_send else config.brokers, scheme)
    if named is not None and named.type.own_cluster and not (named.in_own_cluster or to_send):
        msg = f"source '{named.name}' reads another Kafka cluster: look at its topics with a client of that"
        raise UsageError(msg)
    system = _system(config.brokers, named, scheme, destination, url)
    address = _address(system, destination if scheme in _JMS else rest, destination, wildcards=not to_send)
    if username and not system.has_login:
        msg = f"--username is for brokers; {destination} is a folder, which needs no login"
        raise UsageError(msg)
    login: dict[str, Any] = {"username": username, "password": os.environ.get(_PASSWORD)} if username else {}
    if url is not None:
        found: BrokerConfig | None = system.connection(name="command line", type=system, **_checked(system, url))
    else:
        found = named or _first(config, scheme, system, address)
    broker = found or system.connection(name=system.name, type=system)
    if login:
        other_ways: dict[str, Any] = {
            each.name: None for each in fields(broker) if each.name in ("token", "credentials")
        }
        broker = replace(broker, **login, **other_ways)
    return BrokerDestination(destination, address, broker, config.url(broker), found is not None)


def _system(
    brokers: Sequence[BrokerConfig], named: BrokerConfig | None, scheme: str, destination: str, url: str | None
) -> Connector[Any, Any, Any]:
    """Finds the system of a destination; `named` is the source or sink whose name its scheme is, None without one."""
    if scheme in _JMS:
        return connector(_jms_system(brokers, destination, url))
    if named is not None:
        if named.in_own_cluster:
            msg = f"source '{named.name}' reads the bridge's Kafka: write kafka:{destination.partition(':')[2]}"
            raise UsageError(msg)
        return connector(named.type)
    if scheme in SYSTEMS:
        return connector(system_named(scheme))
    names = ", ".join(dict.fromkeys(broker.name for broker in brokers)) or "none is configured"
    msg = f"{destination!r} is not a destination: expected {_expected()} (NAME is a source or sink: {names})"
    raise UsageError(msg)


def _jms_system(brokers: Sequence[BrokerConfig], destination: str, url: str | None) -> System:
    """System of a queue or topic: that of the URL, else of the source that reads from it, else of the first broker."""
    known = [system for system in all_systems() if system.is_jms]
    if url is not None:
        return next((system for system in known if url.startswith(system.name)), known[0])
    jms = [broker for broker in brokers if broker.type.is_jms]
    reading = (each for each in jms if isinstance(each, SourceConfig) and destination in each.destinations)
    chosen = next(reading, None) or next(iter(jms), None)
    return chosen.type if chosen else known[0]


def _named(brokers: Iterable[BrokerConfig], name: str) -> BrokerConfig | None:
    """The first source or sink of that name, which a source and a sink may have both."""
    if name in (_KAFKA, *_JMS):
        return None
    return next((broker for broker in brokers if broker.name == name), None)


def _first(config: Config, scheme: str, system: System, address: str) -> BrokerConfig | None:
    # `stomp:` and `nats:` are how routes name sinks.
    brokers = config.brokers if scheme in _JMS else (*config.sinks, *config.sources)
    reading = (source for source in config.sources if source.type is system and _reads(source, address))
    return next(reading, None) or next((broker for broker in brokers if broker.type is system), None)


def _reads(source: SourceConfig, address: str) -> bool:
    return any(connector(source.type).covers(destination, address) for destination in source.destinations)


def _address(system: Connector[Any, Any, Any], address: str, destination: str, *, wildcards: bool) -> str:
    spelt = system.spelt(address, wildcards=wildcards)
    if spelt is None:
        expected = system.addresses.expected.replace(" without wildcards", "" if wildcards else " without wildcards")
        msg = f"{destination!r} is not a destination: expected {expected}"
        raise UsageError(msg)
    return spelt


def _checked(system: Connector[Any, Any, Any], url: str) -> dict[str, Any]:
    """The keys of a connection that an address on the command line stands for."""
    located = system.at(url)
    if located is None:
        login = f" without a login; give the user by --username, the password by the variable {_PASSWORD}"
        msg = f"--url{_quoted(url)}: expected {system.url_form}{login if '@' in url and system.has_login else ''}"
        raise UsageError(msg)
    return located


def _quoted(url: str) -> str:
    """A wrong URL for its error, behind a blank; nothing where there may be a login in it."""
    return "" if re.search("[@?]", url) else f" {url}"


def _connection(broker: BrokerConfig, who: str) -> dict[str, Any]:
    """Connection settings of a source or sink, with a client id of the command's own."""
    overrides = {"url": broker.url or broker.listen, "listen": None, "workers": 1, "client_id": who}
    shared = broker.shared()
    return shared | {name: value for name, value in overrides.items() if name in shared}


def _expected() -> str:
    return "kafka:TOPIC, queue:NAME, topic:NAME, nats:SUBJECT, dropbox:queue/NAME, or NAME:ADDRESS"
