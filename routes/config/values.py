"""Kinds of values: how each is written, checked and read. The field table gives every key one of these.

A parser takes the text and returns the value or raises BadValueError, whose offset counts inside the text. None of them
touches a file or the network.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import Any

from routes.model import Target

__all__ = [
    "ANY_TEXT",
    "CREATE_TOPICS",
    "DESTINATIONS",
    "FLAG",
    "HOST_PORT",
    "HOST_PORTS",
    "NAME",
    "PATH",
    "REPLICATION",
    "RETENTION",
    "SOURCE_TYPE",
    "TARGET",
    "TEXT",
    "TOPIC",
    "BadValueError",
    "Kind",
    "choice",
    "duration",
    "size",
    "url",
    "whole",
]

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES = {"": 1, "B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_LATER_SCHEMES = ("amqp", "dropbox", "file", "nats", "stomp")


class BadValueError(ValueError):
    """A text is no value of its kind."""

    def __init__(self, message: str, hint: str = "", offset: int = 0, *, secret: bool = False) -> None:
        super().__init__(message)
        self.hint = hint
        self.offset = offset
        self.secret = secret
        """The text holds what must not be shown; the message does not quote it."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of value."""

    name: str
    """How the reference calls it."""
    expected: str
    """What is expected, for a fault that must not quote the value."""
    parse: Callable[[str], Any]


def choice(enum: type[StrEnum]) -> Kind:
    """One of an enum's values."""
    values = [member.value for member in enum]
    listed = _one_of(values)

    def parse(text: str) -> StrEnum:
        if text in values:
            return enum(text)
        near = get_close_matches(text.lower(), values, n=1)
        raise BadValueError(f"'{text}' is not {listed}", f"did you mean {near[0]}?" if near else "")

    return Kind(" \\| ".join(f"`{value}`" for value in values), listed, parse)


def whole(low: int, high: int) -> Kind:
    """A whole number within bounds."""
    expected = f"a whole number from {low} to {high}"

    def parse(text: str) -> int:
        if not re.fullmatch(r"[+-]?[0-9]{1,18}", text) or not low <= int(text) <= high:
            raise BadValueError(f"'{text}' is not {expected}")
        return int(text)

    return Kind(f"{low} to {high}", expected, parse)


def duration(low: str, high: str) -> Kind:
    """A time with its unit, within bounds; the value is in seconds."""
    expected = f"a time from {low} to {high} with its unit: ms, s, m, h or d"

    def seconds(text: str) -> float:
        match = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*(ms|s|m|h|d)", text)
        if match is None:
            hint = f"write {text}s for seconds" if re.fullmatch(r"[0-9]+", text) else "as in 500ms, 30s, 5m, 12h, 7d"
            raise BadValueError(f"'{text}' is not {expected}", hint)
        return round(float(match[1]) * _SECONDS[match[2]], 6)

    def parse(text: str) -> float:
        value = seconds(text)
        if not seconds(low) <= value <= seconds(high):
            raise BadValueError(f"'{text}' is not {expected}")
        return value

    return Kind("duration", expected, parse)


def size(low: str, high: str) -> Kind:
    """A number of bytes, within bounds."""
    expected = f"a size from {low} to {high}"

    def amount(text: str) -> int:
        match = re.fullmatch(r"([0-9]{1,12})\s*(B|KiB|MiB|GiB|)", text)
        if match is None:
            raise BadValueError(f"'{text}' is not {expected}", "as in 512KiB, 8MiB or 1048576, which is bytes")
        return int(match[1]) * _BYTES[match[2]]

    def parse(text: str) -> int:
        value = amount(text)
        if not amount(low) <= value <= amount(high):
            raise BadValueError(f"'{text}' is not {expected}")
        return value

    return Kind("size", expected, parse)


def url(*schemes: str) -> Kind:
    """The address of a broker: scheme, host and port, nothing else."""
    listed = _one_of([f"{scheme}://host:port" for scheme in schemes])

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


def _parse_text(text: str) -> str:
    if not text.strip():
        raise BadValueError("the value is empty", "remove the line if nothing is to be set")
    for offset, char in enumerate(text):
        if ord(char) < 32 or ord(char) == 127:
            raise BadValueError(f"the value holds a control character, U+{ord(char):04X}", "", offset)
    return text


def _parse_flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise BadValueError(f"'{text}' is not true or false")
    return text == "true"


def _parse_name(text: str) -> str:
    _parse_text(text)
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,100}", text):
        offset = len(re.match(r"[A-Za-z0-9._-]*", text)[0])  # type: ignore[index]
        raise BadValueError(f"'{text}' is no name", "letters, digits, '.', '_' and '-', 100 at most", offset)
    return text


def _parse_topic(text: str) -> str:
    _parse_text(text)
    hint = "letters, digits, '.', '_' and '-', 249 at most"
    if text in (".", ".."):
        raise BadValueError(f"'{text}' is not a valid Kafka topic name", hint)
    if not _TOPIC.fullmatch(text):
        offset = len(re.match(r"[A-Za-z0-9._-]*", text)[0])  # type: ignore[index]
        raise BadValueError(f"'{text}' is not a valid Kafka topic name", hint, min(offset, len(text) - 1))
    return text


def _parse_target(text: str) -> Target:
    _parse_text(text)
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
    _parse_text(text)
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


def _parse_create_topics(text: str) -> bool | None:
    if text not in ("auto", "true", "false"):
        raise BadValueError(f"'{text}' is not auto, true or false")
    return None if text == "auto" else text == "true"


def _parse_replication(text: str) -> int:
    if text == "broker":
        return -1
    try:
        return int(whole(1, 32767).parse(text))
    except BadValueError as error:
        raise BadValueError(f"{error}, or 'broker'") from None


def _parse_retention(text: str) -> float:
    return -0.001 if text == "forever" else float(duration("1s", "36500d").parse(text))


def _parse_source_type(text: str) -> str:
    if text in ("amqp", "dropbox", "kafka", "nats"):
        raise BadValueError(f"sources of type '{text}' are not supported yet", "write stomp")
    if text != "stomp":
        raise BadValueError(f"'{text}' is no known type of source", "write stomp")
    return text


def _parse_path(text: str) -> Path:
    return Path(_parse_text(text))


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


def _one_of(values: list[str]) -> str:
    return values[0] if len(values) == 1 else f"{', '.join(values[:-1])} or {values[-1]}"


ANY_TEXT = Kind("text", "text", lambda text: text)
"""Text of any kind, empty too: what is passed through to another program."""
TEXT = Kind("text", "text", _parse_text)
FLAG = Kind("`true` \\| `false`", "true or false", _parse_flag)
NAME = Kind("name", "a name of letters, digits, '.', '_' and '-'", _parse_name)
TOPIC = Kind("topic", "a Kafka topic name", _parse_topic)
CREATE_TOPICS = Kind("`auto` \\| `true` \\| `false`", "auto, true or false", _parse_create_topics)
REPLICATION = Kind("1 to 32767 \\| `broker`", "a whole number from 1 to 32767, or broker", _parse_replication)
RETENTION = Kind("duration \\| `forever`", "a time with its unit (s, m, h or d), or forever", _parse_retention)
SOURCE_TYPE = Kind("`stomp`", "stomp", _parse_source_type)
TARGET = Kind("destination", "a Kafka topic, as in kafka:orders", _parse_target)
DESTINATIONS = Kind("list of destinations", "destinations such as queue:orders, topic:prices", _parse_destinations)
HOST_PORT = Kind("host:port", "a host and a port", lambda text: _split_host_port(text, lowest=0))
HOST_PORTS = Kind("list of host:port", "one host:port or several, separated by commas", _parse_host_ports)
PATH = Kind("path", "a path", _parse_path)
