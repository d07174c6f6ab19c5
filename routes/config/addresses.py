"""Kinds of values that name a place: broker addresses, Kafka topics, and destinations of either side."""

from __future__ import annotations

import re
from difflib import get_close_matches

from routes.config.values import BadValueError, Kind, one_of, parse_text
from routes.model import Target

__all__ = ["DESTINATIONS", "HOST_PORT", "HOST_PORTS", "TARGET", "TOPIC", "url"]

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_LATER_SCHEMES = ("amqp", "dropbox", "file", "nats", "stomp")


def url(*schemes: str) -> Kind:
    """The address of a broker: scheme, host and port, nothing else."""
    listed = one_of([f"{scheme}://host:port" for scheme in schemes])

    def parse(text: str) -> str:
        scheme, found, rest = text.partition("://")
        if not found or scheme not in schemes:
            near = get_close_matches(scheme, schemes, n=1)
            raise BadValueError(
                f"'{_without_login(text)}' is not {listed}", f"did you mean {near[0]}://?" if near else ""
            )
        offset = len(scheme) + 3
        if "@" in rest:
            hint = "set source.NAME.username and source.NAME.password instead"
            raise BadValueError("a URL holds no user name and no password", hint, secret=True)
        if rest.rstrip("/") != rest.split("/")[0] or "?" in rest or "#" in rest:
            raise BadValueError(f"'{text}' has more than a host and a port", f"expected {listed}", offset)
        host_port = rest.rstrip("/")
        _split_host_port(host_port, offset)
        return f"{scheme}://{host_port}"

    return Kind("URL", listed, parse)


def _parse_topic(text: str) -> str:
    parse_text(text)
    hint = "letters, digits, '.', '_' and '-', 249 at most"
    if text in (".", ".."):
        raise BadValueError(f"'{text}' is not a valid Kafka topic name", hint)
    if not _TOPIC.fullmatch(text):
        offset = len(re.match(r"[A-Za-z0-9._-]*", text)[0])  # type: ignore[index]
        raise BadValueError(f"'{text}' is not a valid Kafka topic name", hint, min(offset, len(text) - 1))
    return text


def _parse_target(text: str) -> Target:
    parse_text(text)
    if "${" in text:
        raise BadValueError("templates in destinations are not supported yet", "name one topic", text.index("${"))
    scheme, found, rest = text.partition(":")
    if not found:
        return Target("kafka", _parse_topic(text))
    if scheme in _LATER_SCHEMES:
        raise BadValueError(
            f"destinations of scheme '{scheme}' are not supported yet", "write a Kafka topic, as in kafka:orders"
        )
    if scheme != "kafka":
        raise BadValueError(f"'{scheme}' is no known kind of destination", "write a Kafka topic, as in kafka:orders")
    try:
        return Target("kafka", _parse_topic(rest))
    except BadValueError as error:
        raise BadValueError(str(error), error.hint, error.offset + len("kafka:")) from None


def _parse_destinations(text: str) -> tuple[str, ...]:
    parse_text(text)
    found: list[str] = []
    offset = 0
    for part in text.split(","):
        at = offset + len(part) - len(part.lstrip())
        offset += len(part) + 1
        destination = part.strip()
        kind, colon, name = destination.partition(":")
        if not destination:
            raise BadValueError("a destination is missing between commas", "as in queue:orders, topic:prices", at)
        if not colon or kind not in ("queue", "topic") or not name.strip():
            meant = destination.rpartition(":")[2].strip() or "orders"
            raise BadValueError(f"'{destination}' is not a destination", f"write queue:{meant} or topic:{meant}", at)
        if destination in found:
            raise BadValueError(f"'{destination}' is listed twice", "name each destination once", at)
        found.append(destination)
    return tuple(found)


def _parse_host_ports(text: str) -> str:
    if "@" in text:
        raise BadValueError("an address holds no user name and no password", "as in 127.0.0.1:9092", secret=True)
    offset = 0
    for part in text.split(","):
        _split_host_port(part.strip(), offset + len(part) - len(part.lstrip()))
        offset += len(part) + 1
    return ",".join(part.strip() for part in text.split(","))


def _split_host_port(text: str, offset: int = 0, lowest: int = 1) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host:
        raise BadValueError(f"'{_without_login(text)}' is not a host and a port", "as in 127.0.0.1:9092", offset)
    if not re.fullmatch(r"\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+", host):
        raise BadValueError(
            f"'{_without_login(host)}' is not a host name", "an IPv6 address goes in brackets: [::1]:9092", offset
        )
    if not re.fullmatch(r"[0-9]{1,5}", port) or not lowest <= int(port) < 65536:
        raise BadValueError(f"'{port}' is not a port", f"a number from {lowest} to 65535", offset + len(host) + 1)
    return host.strip("[]"), int(port)


def _without_login(text: str) -> str:
    return re.sub(r"(://|^)[^/]*@", r"\1…@", text)


DESTINATIONS = Kind("list of destinations", "destinations such as queue:orders, topic:prices", _parse_destinations)
HOST_PORT = Kind("host:port", "a host and a port", lambda text: _split_host_port(text, lowest=0))
HOST_PORTS = Kind("list of host:port", "one host:port or several, separated by commas", _parse_host_ports)
TARGET = Kind("destination", "a Kafka topic, as in kafka:orders", _parse_target)
TOPIC = Kind("topic", "a Kafka topic name", _parse_topic)
