"""Options and arguments that several commands share, and how their values are read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.errors import UsageError
from routes.properties import HEADER_FIELDS, SEED_NAMES, JmsType, Property

if TYPE_CHECKING:
    from collections.abc import Iterable

    from routes.model import Config

__all__ = [
    "DEFAULT_CONFIG",
    "BodyFile",
    "ConfigFile",
    "Headers",
    "Json",
    "Properties",
    "TypedProperties",
    "examples",
    "load",
    "read_body",
    "read_headers",
    "read_properties",
]

ConfigFile = Annotated[
    Path,
    typer.Option("-c", "--config", help="The properties file.", metavar="FILE"),
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
