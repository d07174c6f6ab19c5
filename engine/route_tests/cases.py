"""Reads test cases of routes from a YAML file, which docs/routing.md describes.

All faults of a file are found at once, each with its position.
"""

from __future__ import annotations

import base64
import json
import struct
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from engine.message import BodyType, Message
from engine.route_tests.document import SourcePosition, TestDocument
from engine.telemetry.metrics import FAILURE_REASONS, UNMATCHED, UNROUTED_REASONS
from routes.errors import ConfigurationError
from routes.properties import HEADER_FIELDS, SEED_NAMES, JmsType, Property

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from yaml.nodes import Node

    from engine.message import Record

__all__ = ["DEFAULT_FILE", "HEADER", "NONE", "PUBLISHED", "Case", "Expected", "read_cases"]

DEFAULT_FILE = "routes.test.yaml"
"""Name of the test file beside the properties file."""
NONE, PUBLISHED = "none", "published"
"""Outcomes of a message that have no reason."""
HEADER = "header "
"""Prefix of a header's name in `Expected.what`."""

_CASE = ("name", "message", "expect")
_BODIES = ("body", "body_json", "body_base64", "body_file")
_MESSAGE = ("address", "headers", "properties", *_BODIES, "body_type", "source")
_OF_PUBLISHED = ("destination", "key", "headers", "claim")
_ENDINGS = {
    "dead-letter": (*FAILURE_REASONS, UNMATCHED),
    "skip": FAILURE_REASONS,
    "stop": FAILURE_REASONS,
    "unrouted": UNROUTED_REASONS,
}
"""Outcomes of a message that is not published, each with its possible reasons."""
_EXPECT = ("route", "topic", *_OF_PUBLISHED, *_ENDINGS)
_MOST_BODY_BYTES = 64 * 1024 * 1024
_INTEGERS = {JmsType.BYTE: ">b", JmsType.SHORT: ">h", JmsType.INT: ">i", JmsType.LONG: ">q"}
_FLOATS = (JmsType.FLOAT, JmsType.DOUBLE)


@dataclass(frozen=True, slots=True)
class Expected:
    """An expected property of a message's outcome, with its position in the file."""

    what: str
    """Name of the property: `result`, `route`, `topic`, `destination`, `key`, `claim`, or `header NAME`."""
    value: str | bytes | None
    """Value; a result is `none`, `published`, or `ENDING: REASON`. None: no such key, claim or header is expected."""
    place: SourcePosition


@dataclass(frozen=True, slots=True)
class Case:
    """A test case: a message and its expected outcome."""

    name: str
    file: str
    line: int
    record: Record
    """The message as a journal record."""
    expected: tuple[Expected, ...]


def read_cases(path: Path) -> tuple[Case, ...]:
    """Reads the cases in a file, in its order; ConfigurationError holds all faults of the file."""
    document = TestDocument(path)
    cases = _Reader(document).cases() if document.root is not None else ()
    if document.faults:
        raise ConfigurationError(document.faults)
    return cases


class _Reader:
    """Makes test cases from the nodes of a document, and adds faults to it."""

    def __init__(self, document: TestDocument) -> None:
        self._document = document

    def cases(self) -> tuple[Case, ...]:
        _, nodes = self._document.tests()
        found = [(case, node) for number, node in enumerate(nodes, 1) if (case := self._case(node, number))]
        self._document.check_names((case.name, node) for case, node in found)
        return tuple(case for case, _ in found)

    def _case(self, node: Node, number: int) -> Case | None:
        before = len(self._document.faults)
        members = self._document.members(node, "a test", _CASE)
        if len(self._document.faults) > before:
            return None
        for needed in ("message", "expect"):
            if needed not in members:
                self._document.fault(node, f"the test has no '{needed}'")
                return None
        name = self._document.text(members["name"], "'name'") if "name" in members else None
        line = self._document.place(node).line
        record = self._message(members["message"]).to_record()
        expected = self._expected(members["expect"])
        return Case(name or f"test {number}", str(self._document.path), line, record, expected)

    def _message(self, node: Node) -> Message:
        members = self._document.members(node, "'message'", _MESSAGE)
        headers = {"JMSMessageID": "ID:example", "JMSDeliveryMode": "PERSISTENT"}
        if "headers" in members:
            headers |= self._headers(members["headers"])
        if "address" in members and (address := self._document.text(members["address"], "'address'")):
            headers["JMSDestination"] = address
        properties = self._properties(members["properties"]) if "properties" in members else {}
        body, kind = self._body(node, members)
        source = self._document.text(members["source"], "'source'") if "source" in members else None
        return Message(body, kind, headers, properties, source or "")

    def _headers(self, node: Node) -> dict[str, str]:
        found = {}
        for name, value in self._document.members(node, "'headers'").items():
            full = SEED_NAMES.get(name, name)
            if full not in HEADER_FIELDS:
                near = get_close_matches(full, HEADER_FIELDS, n=1)
                hint = f"did you mean '{near[0]}'?" if near else "other names belong to 'properties'"
                self._document.fault(value, f"'{name}' is not a JMS field", hint)
            elif (text := self._document.text(value, f"'{name}'")) is not None:
                found[full] = text
        return found

    def _properties(self, node: Node) -> dict[str, Property]:
        found = {}
        for name, value in self._document.members(node, "'properties'").items():
            if (read := self._property(value, f"'{name}'")) is not None:
                found[name] = read
        return found

    def _property(self, node: Node, what: str) -> Property | None:
        """Reads a property; None for null and for an incomplete one.

        Plain text has no declared type, as on a wire without types.
        """
        if not self._document.is_mapping(node):
            value = self._document.scalar(node, what)
            return None if value is None else Property(value) if isinstance(value, str) else Property.of(value)
        members = self._document.members(node, what, ("type", "value"))
        if len(members) < 2:
            self._document.fault(node, f"{what} needs a type and a value", "as in {type: int, value: 5}")
            return None
        kind = self._choice(members["type"], f"the type of {what}", tuple(JmsType))
        text = self._document.text(members["value"], f"the value of {what}")
        if kind is None or text is None:
            return None
        if not _fits(text, JmsType(kind)):
            self._document.fault(members["value"], f"'{text}' is not a value of type {kind}")
        return Property(text, JmsType(kind))

    def _body(self, node: Node, members: dict[str, Node]) -> tuple[bytes, BodyType]:
        given = [name for name in _BODIES if name in members]
        if len(given) > 1:
            self._document.fault(members[given[1]], f"a message has one body, and there is '{given[0]}' already")
        body = self._content(given[0], members[given[0]]) if given else b""
        kind = BodyType.BYTES if given == ["body_base64"] else BodyType.TEXT
        if given == ["body_file"]:
            kind = BodyType.of(body)
        if "body_type" in members:
            named = self._choice(members["body_type"], "'body_type'", tuple(BodyType))
            kind = BodyType(named) if named else kind
        return body, kind

    def _content(self, name: str, node: Node) -> bytes:
        if name == "body_json":
            return json.dumps(self._document.tree(node, "'body_json'"), ensure_ascii=False).encode()
        text = self._document.text(node, f"'{name}'") or ""
        if name == "body":
            return text.encode()
        return self._document.from_base64(node, text) if name == "body_base64" else self._file(node, text)

    def _file(self, node: Node, name: str) -> bytes:
        try:
            with (self._document.path.parent / name).open("rb") as file:
                body = file.read(_MOST_BODY_BYTES + 1)
        except (OSError, ValueError) as error:
            why = (getattr(error, "strerror", "") or str(error)).lower()
            self._document.fault(node, f"the file '{name}' cannot be read: {why}", "paths start at the test file")
            return b""
        if len(body) > _MOST_BODY_BYTES:
            self._document.fault(node, f"the file '{name}' has more than {_MOST_BODY_BYTES >> 20} MiB")
            return b""
        return body

    def _expected(self, node: Node) -> tuple[Expected, ...]:
        if self._document.is_scalar(node):
            return (self._one("result", self._choice(node, "'expect'", (NONE,)), node),)
        before = len(self._document.faults)
        members = self._document.members(node, "'expect'", _EXPECT)
        if not members and len(self._document.faults) == before:
            self._document.fault(node, "the test expects nothing", f"name some of {', '.join(_EXPECT)}, or write none")
        expected = [self._result(members, node)]
        expected += [
            self._one(name, self._document.text(members[name], f"'{name}'"), members[name])
            for name in ("route", "topic", "destination", "key", "claim")
            if name in members
        ]
        if "headers" in members:
            headers = self._document.members(members["headers"], "'headers'")
            expected += [
                self._one(HEADER + name, self._document.header(value, f"'{name}'"), value)
                for name, value in headers.items()
            ]
        return tuple(expected)

    def _result(self, members: dict[str, Node], node: Node) -> Expected:
        endings = [name for name in _ENDINGS if name in members]
        if not endings:
            return self._one("result", PUBLISHED, node)
        ending, *more = endings
        if more:
            self._document.fault(members[more[0]], f"a message ends in one way, and there is '{ending}' already")
        for name in _OF_PUBLISHED:
            if name in members:
                self._document.fault(members[name], f"'{name}' is expected of published messages, not with '{ending}'")
        reason = self._choice(members[ending], f"the reason of '{ending}'", _ENDINGS[ending])
        return self._one("result", f"{ending}: {reason}", members[ending])

    def _choice(self, node: Node, what: str, known: Collection[str]) -> str | None:
        """The text of a node if it is one of `known`; otherwise adds a fault and returns None."""
        text = self._document.text(node, what)
        if text in known:
            return text
        near = get_close_matches(text or "", known, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"expected {' or '.join(known)}"
        self._document.fault(node, f"{what} is '{text or ''}'", hint)
        return None

    def _one(self, what: str, value: str | bytes | None, node: Node) -> Expected:
        return Expected(what, value, self._document.place(node))


def _fits(text: str, kind: JmsType) -> bool:
    """True if a text is a value of a type, as the journal writes it."""
    try:
        if kind in _INTEGERS:
            struct.pack(_INTEGERS[kind], int(text))
        elif kind in _FLOATS:
            float(text)
        elif kind is JmsType.BYTES:
            base64.b64decode(text, validate=True)
    except (ValueError, struct.error):
        return False
    return kind is not JmsType.BOOLEAN or text in ("true", "false")
