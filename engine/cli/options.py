"""Options and arguments that several commands share, and how their values are read."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.errors import UsageError
from engine.message import BodyType, Message
from routes.properties import HEADER_FIELDS, SEED_NAMES, JmsType, Property

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from routes.model import Config

__all__ = [
    "DEFAULT_CONFIG",
    "Base64",
    "BodyFile",
    "ConfigFile",
    "CorrelationId",
    "Expires",
    "Headers",
    "JmsTypeOption",
    "Json",
    "NonPersistent",
    "Priority",
    "Properties",
    "Seconds",
    "TypedProperties",
    "examples",
    "load",
    "read_body",
    "read_fields",
    "read_headers",
    "read_message",
    "read_properties",
    "read_seconds",
]

_SECONDS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0}

ConfigFile = Annotated[
    Path,
    # Whether it can be read is told by who reads it, as a fault of the file; Typer would call it a wrong argument.
    typer.Option("-c", "--config", help="The properties file.", metavar="FILE", readable=False),
]
DEFAULT_CONFIG = Path("jms-bridge.properties")
Json = Annotated[bool, typer.Option("--json", help="Print JSON, one value per line, for programs.")]
Headers = Annotated[
    list[str],
    typer.Option("--header", "-H", metavar="NAME=VALUE", help="A JMS field, as JMSCorrelationID=42. Repeatable."),
]
Properties = Annotated[
    list[str],
    typer.Option("--property", "-p", metavar="NAME=VALUE", help="A property, as region=emea. Repeatable."),
]
TypedProperties = Annotated[
    list[str],
    typer.Option(
        "--typed-property",
        metavar="NAME:TYPE=VALUE",
        help="A property whose wire says its type (boolean, byte, short, int, long, float, double, string), "
        "as count:int=5. Repeatable.",
    ),
]
BodyFile = Annotated[
    str | None,
    typer.Option("--body-file", metavar="FILE", help="Read the body from a file, byte for byte; - is standard input."),
]
CorrelationId = Annotated[str | None, typer.Option("--correlation-id", metavar="ID", help="JMSCorrelationID.")]
JmsTypeOption = Annotated[str | None, typer.Option("--type", metavar="TEXT", help="JMSType.")]
Priority = Annotated[int | None, typer.Option("--priority", min=0, max=9, metavar="0..9", help="JMSPriority.")]
Expires = Annotated[
    float | None, typer.Option("--expires", min=0.0, metavar="SECONDS", help="Expires after that time.")
]
NonPersistent = Annotated[bool, typer.Option("--non-persistent", help="Send as NON_PERSISTENT.")]
Base64 = Annotated[bool, typer.Option("--base64", help="Show bodies that are not text in base64 instead of hex.")]


def read_seconds(text: str | float) -> float:
    """Seconds, or a time with its unit."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(|ms|s|m)", str(text).strip())
    if found is None:
        raise typer.BadParameter(f"{text!r} is no time: expected seconds, as 5 or 5s, or 500ms or 2m")
    return float(found[1]) * _SECONDS[found[2]]


Seconds = Annotated[
    float,
    typer.Option(
        "--timeout", parser=read_seconds, metavar="SECONDS", help="How long to wait for a message when there is none."
    ),
]


def examples(*lines: str) -> str:
    """The foot of a command's help: one example on each line."""
    # Typer folds single line breaks, so each line is a paragraph of its own.
    return "\n\n".join(["Examples:", *(line.replace("[", "\\[") for line in lines)])


def load(path: Path) -> Config:
    """The configuration in `path`; ConfigurationError with all its faults."""
    from routes import config

    return config.load(path)


def read_headers(pairs: Iterable[str]) -> dict[str, str]:
    """JMS fields by their full names; both spellings are taken, `JMSCorrelationID` and `CorrelationId`."""
    headers = {}
    for name, value in map(_split, pairs):
        full = SEED_NAMES.get(name, name)
        if full not in HEADER_FIELDS:
            known = ", ".join(HEADER_FIELDS)
            msg = f"--header {name}: not a JMS field; use --property for a property, or one of {known}"
            raise UsageError(msg)
        headers[full] = value
    return headers


def read_properties(plain: Iterable[str], typed: Iterable[str] = ()) -> dict[str, Property]:
    """Properties without and with a declared type."""
    properties = {name: Property(value) for name, value in map(_split, plain)}
    for pair in typed:
        declared, value = _split(pair)
        name, found, kind = declared.rpartition(":")
        if not found or kind not in JmsType.__members__.values():
            msg = f"--typed-property {pair!r}: expected NAME:TYPE=VALUE with TYPE one of {', '.join(JmsType)}"
            raise UsageError(msg)
        properties[name] = Property(value, JmsType(kind))
    return properties


def read_body(text: str | None, file: str | None) -> tuple[bytes, bool]:
    """The body and whether it is text: an argument is text, a file is text where it is UTF-8."""
    if file is None:
        return (text or "").encode("utf-8", "surrogateescape"), True
    if text is not None:
        msg = "give the body as an argument or with --body-file, not both"
        raise UsageError(msg)
    try:
        body = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        msg = f"--body-file {file}: {error.strerror}"
        raise UsageError(msg) from error
    return body, _is_text(body)


def read_fields(
    correlation_id: str | None, jms_type: str | None, priority: int | None, expires: float | None, non_persistent: bool
) -> dict[str, str]:
    """The JMS fields that have options of their own, as far as they are given."""
    options = {
        "JMSCorrelationID": correlation_id,
        "JMSType": jms_type,
        "JMSPriority": None if priority is None else str(priority),
        "JMSExpiration": None if expires is None else str(int((time.time() + expires) * 1000)),
        "JMSDeliveryMode": "NON_PERSISTENT" if non_persistent else None,
    }
    return {name: value for name, value in options.items() if value is not None}


def read_message(
    fields: Mapping[str, str], plain: Iterable[str], typed: Iterable[str], body: str | None, file: str | None
) -> Message:
    """The message that the options of a command make; JMSX fields may be given as properties, as JMS has them."""
    properties = read_properties(plain, typed)
    given = {name: properties.pop(name).text for name in HEADER_FIELDS if name in properties}
    payload, text = read_body(body, file)
    return Message(payload, BodyType.TEXT if text else BodyType.BYTES, {**given, **fields}, properties)


def _split(pair: str) -> tuple[str, str]:
    name, found, value = pair.partition("=")
    if not found or not name:
        msg = f"{pair!r}: expected NAME=VALUE"
        raise UsageError(msg)
    return name, value


def _is_text(body: bytes) -> bool:
    try:
        return "\0" not in body.decode()
    except UnicodeDecodeError:
        return False
