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
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.errors import UsageError
from routes.model import BrokerConfig, SinkConfig, SourceConfig, WireFormat
from routes.targets import ADDRESSES, JMS, System

if TYPE_CHECKING:
    from collections.abc import Mapping

    from routes.model import Config

__all__ = ["Broker", "BrokerDestination", "Username", "kafka_topic", "place_of"]

_KAFKA = "kafka"
_JMS = ("queue", "topic")
_PASSWORD = "JMS_BRIDGE_PASSWORD"  # noqa: S105 - the name of a variable
_URLS: Mapping[System, tuple[str, str]] = {
    System.STOMP: (r"stomp(\+ssl)?", "stomp://HOST:PORT or stomp+ssl://HOST:PORT"),
    System.AMQP: ("amqps?", "amqp://HOST:PORT or amqps://HOST:PORT"),
    System.NATS: ("nats|tls", "nats://HOST:PORT or tls://HOST:PORT"),
}
_DROPBOX_URL = re.compile(r"dropbox://(/[^\x00-\x1f\x7f]*)")
_AMQP_SCHEME = "amqp"
_JMS_ADDRESS = re.compile(r"/?(queue|topic)[/:](.+)")
_NATS_KIND = re.compile(r"^(?:queue|topic)[/:]")
_WILDCARD = re.compile(r"(?<![^.])(?:\*(?![^.])|>$)")

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
    """A destination at a broker, and how to get there."""

    text: str
    """As the user spelt it."""
    address: str
    """`queue:NAME` or `topic:NAME` at a JMS broker and in folders, a subject at a NATS server."""
    broker: BrokerConfig
    url: str
    configured: bool
    """Whether a source, a sink or the command line names the broker; else it is where an embedded one would be."""

    @property
    def system(self) -> System:
        """System of the broker."""
        return self.broker.type

    def reply_address(self, text: str) -> str:
        """Reply address in the spelling of `address`; raises UsageError if the text is none."""
        scheme, _, rest = text.partition(":")
        return _address(self.system, rest if scheme in (self.system, self.broker.name) else text, text, wildcards=False)

    def sink(self, who: str, form: WireFormat | None = None, stream: bool | None = None) -> SinkConfig:
        """A sink of its own for the process; what is not said is as at the configured sink."""
        own = self.broker if isinstance(self.broker, SinkConfig) else None
        form = form or (own.format if own else WireFormat.HEADERS)
        kept = (own.stream if own else False) if stream is None else stream
        return SinkConfig(**_connection(self.broker, who), topic="", format=form, stream=kept)

    def source(self, who: str, address: str | None = None, stream: str | None = None) -> SourceConfig:
        """A source of its own for the process, which shares no subscription with any other."""
        form = self.broker.format if isinstance(self.broker, SourceConfig) else WireFormat.AUTO
        connection = _connection(self.broker, who)
        return SourceConfig(
            **connection, destinations=(address or self.address,), format=form, stream=stream, consumer=who
        )


def kafka_topic(destination: str) -> str | None:
    """The topic of `kafka:TOPIC`; None for any other destination. UsageError without a scheme or a name."""
    scheme, _, name = destination.partition(":")
    if re.search("://.*@", destination):
        msg = f"a URL with a login is no destination: expected {_expected()}; --url names a broker, --username a user"
        raise UsageError(msg)
    if not scheme or not name:
        msg = f"{destination!r} is no destination: expected {_expected()}"
        raise UsageError(msg)
    return name if scheme == _KAFKA else None


def place_of(
    config: Config, destination: str, url: str | None, username: str | None, *, to_send: bool
) -> BrokerDestination:
    """The place at a broker; UsageError if there is none of that kind.

    The broker is that of `url`; else of the source or sink of that name; else of the source that reads this address;
    else of the first source or sink of that type; else the embedded one.
    """
    scheme, _, rest = destination.partition(":")
    system = _system(config, scheme, destination, url, to_send)
    address = _address(system, destination if scheme in _JMS else rest, destination, wildcards=not to_send)
    if username and system is System.DROPBOX:
        msg = f"--username is for brokers; {destination} is a folder, which needs no login"
        raise UsageError(msg)
    login: dict[str, Any] = {"username": username, "password": os.environ.get(_PASSWORD)} if username else {}
    if url is not None:
        found: BrokerConfig | None = BrokerConfig(name="command line", type=system, **_checked(system, url))
    else:
        found = _named(config, scheme, to_send) or _first(config, scheme, system, address)
    broker = found or BrokerConfig(name=system.value, type=system)
    if login:
        broker = replace(broker, **login, token=None, credentials=None)
    return BrokerDestination(destination, address, broker, config.url(broker), found is not None)


def _system(config: Config, scheme: str, destination: str, url: str | None, to_send: bool) -> System:
    if scheme in _JMS:
        return _jms_system(config, destination, url)
    if (named := _named(config, scheme, to_send)) is not None:
        if named.type is System.KAFKA:
            msg = f"source '{named.name}' reads the bridge's Kafka: write kafka:{destination.partition(':')[2]}"
            raise UsageError(msg)
        return named.type
    if scheme in list(System):
        return System(scheme)
    names = ", ".join(dict.fromkeys(broker.name for broker in config.brokers)) or "none is configured"
    msg = f"{destination!r} is no destination: expected {_expected()} (NAME is a source or sink: {names})"
    raise UsageError(msg)


def _jms_system(config: Config, destination: str, url: str | None) -> System:
    """System of a queue or topic: that of the URL, else of the source that reads from it, else of the first broker."""
    if url is not None:
        return System.AMQP if url.startswith(_AMQP_SCHEME) else System.STOMP
    brokers = [broker for broker in config.brokers if broker.type in JMS]
    reading = (each for each in brokers if isinstance(each, SourceConfig) and destination in each.destinations)
    found = next(reading, None) or next(iter(brokers), None)
    return found.type if found else System.STOMP


def _named(config: Config, name: str, to_send: bool) -> BrokerConfig | None:
    """A sink and a source may have the same name."""
    if name in (_KAFKA, *_JMS):
        return None
    brokers = (*config.sinks, *config.sources) if to_send else config.brokers
    return next((broker for broker in brokers if broker.name == name), None)


def _first(config: Config, scheme: str, system: System, address: str) -> BrokerConfig | None:
    # `stomp:` and `nats:` are how routes name sinks.
    brokers = config.brokers if scheme in _JMS else (*config.sinks, *config.sources)
    reading = (source for source in config.sources if source.type is system and _reads(source, address))
    return next(reading, None) or next((broker for broker in brokers if broker.type is system), None)


def _reads(source: SourceConfig, address: str) -> bool:
    if source.type is not System.NATS:
        return address in source.destinations
    return any(_covers(subject.split("."), address.split(".")) for subject in source.destinations)


def _covers(subject: list[str], words: list[str]) -> bool:
    """Returns True if a subject with wildcards covers another one."""
    for number, word in enumerate(subject):
        if word == ">":
            return len(words) > number
        if number >= len(words) or word not in ("*", words[number]):
            return False
    return len(subject) == len(words)


def _address(system: System, address: str, destination: str, *, wildcards: bool) -> str:
    bare = _NATS_KIND.sub("", address) if system is System.NATS else address
    plain = _WILDCARD.sub("x", bare) if wildcards and system is System.NATS else bare
    if not re.fullmatch(ADDRESSES[system].pattern, plain):
        expected = ADDRESSES[system].expected.replace(" without wildcards", "" if wildcards else " without wildcards")
        msg = f"{destination!r} is no destination: expected {expected}"
        raise UsageError(msg)
    if system is System.NATS:
        return bare
    found = _JMS_ADDRESS.fullmatch(bare)
    # The name alone is that of a queue.
    return f"{found[1]}:{found[2]}" if found else f"queue:{bare.removeprefix('/')}"


def _checked(system: System, url: str) -> dict[str, Any]:
    """The keys of a connection that an address on the command line stands for."""
    if system is System.DROPBOX:
        found = _DROPBOX_URL.fullmatch(url)
        if found is None:
            msg = f"--url{_quoted(url)}: expected dropbox:///PATH, the folder of the dropboxes"
            raise UsageError(msg)
        return {"root": Path(found[1])}
    pattern, expected = _URLS[system]
    if not re.fullmatch(rf"(?:{pattern})://[^\s/@]+:[0-9]{{1,5}}/?", url):
        login = f" without a login; give the user by --username, the password by the variable {_PASSWORD}"
        msg = f"--url{_quoted(url)}: expected {expected}{login if '@' in url else ''}"
        raise UsageError(msg)
    return {"url": url}


def _quoted(url: str) -> str:
    """A wrong URL for its error, behind a blank; nothing where there may be a login in it."""
    return "" if re.search("[@?]", url) else f" {url}"


def _connection(broker: BrokerConfig, who: str) -> dict[str, Any]:
    """Connection settings of a source or sink, with a client id of the command's own."""
    settings = {field.name: getattr(broker, field.name) for field in fields(BrokerConfig)}
    return {**settings, "url": broker.url or broker.listen, "listen": None, "workers": 1, "client_id": who}


def _expected() -> str:
    return "kafka:TOPIC, queue:NAME, topic:NAME, nats:SUBJECT, dropbox:queue/NAME, or NAME:ADDRESS"
