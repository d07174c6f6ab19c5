"""Options and arguments that several commands share, and how their values are read."""

from __future__ import annotations

import base64
import binascii
import inspect
import json
import re
import sys
import time
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from engine.errors import UsageError
from engine.message import BodyType, Message, Record
from routes.errors import PredicateError
from routes.properties import HEADER_FIELDS, SEED_NAMES, JmsType, Property

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from routes.model import Config
    from routes.predicate import Predicate

__all__ = [
    "DEFAULT_CONFIG",
    "Base64",
    "BodyFile",
    "Command",
    "ConfigFile",
    "Headers",
    "Json",
    "MessageOptions",
    "Properties",
    "Seconds",
    "TypedProperties",
    "command",
    "examples",
    "grouped",
    "load",
    "read_body",
    "read_file",
    "read_headers",
    "read_message",
    "read_pair",
    "read_predicate",
    "read_properties",
    "read_registry_urls",
    "read_seconds",
]

_SECONDS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0}

ConfigFile = Annotated[
    Path,
    # Whether it can be read is told by who reads it, as a fault of the file; Typer would call it a wrong argument.
    typer.Option("-c", "--config", help="Properties file.", metavar="FILE", readable=False),
]
DEFAULT_CONFIG = Path("jms-bridge.properties")
Json = Annotated[bool, typer.Option("--json", help="Print JSON, one value per line, for programs.")]
Headers = Annotated[
    list[str],
    typer.Option(
        "--header", "-H", metavar="NAME=VALUE", help="A JMS field, for example JMSCorrelationID=42. Repeatable."
    ),
]
Properties = Annotated[
    list[str],
    typer.Option("--property", "-p", metavar="NAME=VALUE", help="A property, for example region=emea. Repeatable."),
]
TypedProperties = Annotated[
    list[str],
    typer.Option(
        "--typed-property",
        metavar="NAME:TYPE=VALUE",
        help="A property with its type (boolean, byte, short, int, long, float, double, string), "
        "for example count:int=5. Repeatable.",
    ),
]
BodyFile = Annotated[
    str | None,
    typer.Option("--body-file", metavar="FILE", help="Read the body from a file, byte for byte; - is standard input."),
]
Base64 = Annotated[bool, typer.Option("--base64", help="Show bodies that are not text in base64 instead of hex.")]


def read_seconds(text: str | float) -> float:
    """Seconds, or a time with its unit."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(|ms|s|m)", str(text).strip())
    if match is None:
        raise typer.BadParameter(f"{text!r} is not a time: expected seconds, as 5 or 5s, or 500ms or 2m")
    return float(match[1]) * _SECONDS[match[2]]


def read_predicate(text: str) -> Predicate:
    """Reads the predicate of `--where`; UsageError with its place if it is wrong."""
    from routes.predicate import parse

    try:
        return parse(text)
    except PredicateError as error:
        raise UsageError(str(replace(error.fault, file="--where"))) from error


def read_registry_urls(text: str) -> str:
    """The text, if it is what `schema.registry.url` may be."""
    from routes.keys.addresses import REGISTRY_URLS
    from routes.keys.values import BadValueError

    try:
        REGISTRY_URLS.parse(text)
    except BadValueError as error:
        raise typer.BadParameter(str(error)) from error
    return text


Seconds = Annotated[
    float,
    typer.Option(
        "--timeout", parser=read_seconds, metavar="SECONDS", help="Time to wait for a message when there is none."
    ),
]


@dataclass(frozen=True, slots=True)
class Command:
    """A command of the program: the function that Typer calls, and the foot of its help."""

    run: Callable[..., None]
    epilog: str
    name: str | None
    """None for the name of the function."""


@dataclass(frozen=True, slots=True)
class MessageOptions:
    """Options of the commands that send a message, and their argument BODY; see `grouped`."""

    body: Annotated[str | None, typer.Argument(metavar="BODY", help="The body, as text; empty if left out.")] = None
    headers: Headers = field(default_factory=list)
    properties: Properties = field(default_factory=list)
    typed: TypedProperties = field(default_factory=list)
    correlation_id: Annotated[str | None, typer.Option("--correlation-id", metavar="ID", help="JMSCorrelationID.")] = (
        None
    )
    jms_type: Annotated[str | None, typer.Option("--type", metavar="TEXT", help="JMSType.")] = None
    priority: Annotated[int | None, typer.Option("--priority", min=0, max=9, metavar="0..9", help="JMSPriority.")] = (
        None
    )
    expires: Annotated[
        float | None,
        typer.Option("--expires", min=0.0, metavar="SECONDS", help="Time after which the message expires."),
    ] = None
    non_persistent: Annotated[bool, typer.Option("--non-persistent", help="Send as NON_PERSISTENT.")] = False
    body_file: BodyFile = None

    def fields(self) -> dict[str, str]:
        """Returns the JMS fields that are set by options; UsageError if one is unknown."""
        options = {
            "JMSCorrelationID": self.correlation_id,
            "JMSType": self.jms_type,
            "JMSPriority": None if self.priority is None else str(self.priority),
            "JMSExpiration": None if self.expires is None else str(int((time.time() + self.expires) * 1000)),
            "JMSDeliveryMode": "NON_PERSISTENT" if self.non_persistent else None,
        }
        return read_headers(self.headers) | {name: value for name, value in options.items() if value is not None}

    def message(self, fields: Mapping[str, str]) -> Message:
        """Makes the message with these JMS fields; UsageError if an option is invalid."""
        return read_message(fields, self.properties, self.typed, self.body, self.body_file)


def grouped(run: Callable[..., None]) -> Callable[..., None]:
    """Replaces each parameter of a command whose type is a dataclass by one parameter for each field of the dataclass.

    Typer then makes an option of each field.
    """
    hints = get_type_hints(run, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters = []
    for name, parameter in inspect.signature(run).parameters.items():
        if (group := groups.get(name)) is None:
            parameters.append(parameter.replace(kind=parameter.KEYWORD_ONLY, annotation=hints[name]))
            continue
        types = get_type_hints(group, include_extras=True)
        for each in fields(group):
            default = each.default if each.default_factory is MISSING else each.default_factory()
            parameters.append(
                inspect.Parameter(each.name, parameter.KEYWORD_ONLY, default=default, annotation=types[each.name])
            )

    @wraps(run)
    def call(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{each.name: given.pop(each.name) for each in fields(group)})
        run(**given)

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {}
    return call


def command(*lines: str, name: str | None = None) -> Callable[[Callable[..., None]], Command]:
    """Decorator that makes a command of a function; the lines are the examples in its help."""
    return lambda run: Command(grouped(run), examples(*lines), name)


def examples(*lines: str) -> str:
    """The foot of a command's help: one example on each line."""
    # Typer folds single line breaks, so each line is a paragraph of its own.
    return "\n\n".join(["Examples:", *(line.replace("[", "\\[") for line in lines)])


def load(path: Path, *, logs: bool = True) -> Config:
    """The configuration in `path`; ConfigurationError with all its faults. The log of this process hides its secrets.

    Without `logs`, for a process that logs nothing, there is no log.
    """
    from routes import config

    loaded = config.load(path)
    if logs:
        from engine.telemetry import light_structlog, logging  # noqa: F401

        logging.setup(loaded)
    return loaded


def read_headers(pairs: Iterable[str]) -> dict[str, str]:
    """JMS fields by their full names; both spellings are taken, `JMSCorrelationID` and `CorrelationId`."""
    headers = {}
    for name, value in map(read_pair, pairs):
        full = SEED_NAMES.get(name, name)
        if full not in HEADER_FIELDS:
            known = ", ".join(HEADER_FIELDS)
            msg = f"--header {name}: not a JMS field; use --property for a property, or one of {known}"
            raise UsageError(msg)
        headers[full] = value
    return headers


def read_properties(plain: Iterable[str], typed: Iterable[str] = ()) -> dict[str, Property]:
    """Properties without and with a declared type."""
    properties = {name: Property(value) for name, value in map(read_pair, plain)}
    for pair in typed:
        declared, value = read_pair(pair)
        name, colon, kind = declared.rpartition(":")
        if not colon or kind not in JmsType.__members__.values():
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


def read_message(
    fields: Mapping[str, str], plain: Iterable[str], typed: Iterable[str], body: str | None, file: str | None
) -> Message:
    """The message that the options of a command make; JMSX fields may be given as properties, as JMS has them."""
    properties = read_properties(plain, typed)
    given = {name: properties.pop(name).text for name in HEADER_FIELDS if name in properties}
    payload, text = read_body(body, file)
    return Message(payload, BodyType.TEXT if text else BodyType.BYTES, {**given, **fields}, properties)


def read_pair(pair: str, option: str = "") -> tuple[str, str]:
    """The name and the value of NAME=VALUE; UsageError, which names the `option`, for another text."""
    name, separator, value = pair.partition("=")
    if not separator or not name:
        msg = f"{option} {pair!r}: expected NAME=VALUE".lstrip()
        raise UsageError(msg)
    return name, value


def _is_text(body: bytes) -> bool:
    try:
        return "\0" not in body.decode()
    except UnicodeDecodeError:
        return False


def read_file(name: str) -> Record:
    """Reads a whole message from a file: JSON, or headers, an empty line and the body. `-` is standard input.

        {"address": "queue:orders", "headers": {"JMSCorrelationID": "42"}, "body": "hello",
         "properties": {"region": "emea", "amount": 5, "price": {"type": "float", "value": "1.5"}}}

        JMSDestination: queue:orders
        region: emea

        hello

    JSON as `receive --json`, `journal tail --json` and `dlt show --json` print it is taken as well. A text value has no
    declared type, as on a wire without types; a number is a long or a double, true and false are booleans.

    Raises:
        UsageError: the file cannot be read, or is not a message.
    """
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        msg = f"--file {name}: {error.strerror}"
        raise UsageError(msg) from error
    try:
        return _from_json(data) if data.lstrip().startswith(b"{") else _from_text(data)
    except (ValueError, KeyError, TypeError, AttributeError, binascii.Error, RecursionError) as error:
        msg = f"--file {name}: the file is not a message: {error}"
        raise UsageError(msg) from error


def _from_json(data: bytes) -> Record:
    content = json.loads(data)
    if isinstance(content.get("headers"), list):
        headers = tuple((item["name"], _bytes(item, "value")) for item in content["headers"])
        return Record(_bytes(content, "key"), _bytes(content, "body"), headers)
    unknown = content.keys() - {"address", "headers", "properties", "body", "body_base64", "body_type", "source"}
    if unknown:
        known = "address, headers, properties, body, body_type, source"
        msg = f"unknown member {', '.join(sorted(unknown))}; known are {known}"
        raise ValueError(msg)
    body = _bytes(content, "body") or b""
    kind = BodyType(content.get("body_type", BodyType.BYTES if "body_base64" in content else BodyType.TEXT))
    fields = {"JMSMessageID": "ID:example", **{name: str(value) for name, value in content.get("headers", {}).items()}}
    if "address" in content:
        fields["JMSDestination"] = content["address"]
    properties = {name: _property(value) for name, value in content.get("properties", {}).items()}
    return Message(body, kind, fields, properties, content.get("source", "")).to_record()


def _from_text(data: bytes) -> Record:
    head, _, body = data.replace(b"\r\n", b"\n").partition(b"\n\n")
    fields: dict[str, str] = {"JMSMessageID": "ID:example"}
    properties: dict[str, Property] = {}
    for number, line in enumerate(head.decode().splitlines(), 1):
        name, colon, value = (part.strip() for part in line.partition(":"))
        if not colon or not name:
            msg = f"line {number}: expected NAME: VALUE"
            raise ValueError(msg)
        full = SEED_NAMES.get(name, name)
        if full in HEADER_FIELDS:
            fields[full] = value
        else:
            properties[name] = Property(value)
    return Message(body.removesuffix(b"\n"), headers=fields, properties=properties).to_record()


def _property(value: Any) -> Property:
    if isinstance(value, dict):
        return Property(str(value["value"]), JmsType(value["type"]))
    return Property(value) if isinstance(value, str) else Property.of(value)


def _bytes(content: dict[str, Any], name: str) -> bytes | None:
    if (encoded := content.get(f"{name}_base64")) is not None:
        return base64.b64decode(encoded, validate=True)
    text = content.get(name)
    return None if text is None else text.encode()
