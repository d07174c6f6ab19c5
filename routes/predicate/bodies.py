"""Bodies as predicates see them: values under paths into JSON, XML and values with a schema, and the body as text.

A body of another format has no values, as a message without a property has none. So has one that exceeds `Bounds`:
whatever a body holds, reading it takes time and memory in proportion to its size. `jmsbridge.predicate.Body`
(`jvm/spark`) reads the same bodies alike.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Protocol

from routes.predicate.nodes import PATHS, BodyPath, DocumentFormat, IsNull, ValuePath, XmlPath
from routes.predicate.numbers import decimal
from routes.predicate.xml_document import places as xml_places
from routes.predicate.xml_document import read_xml

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from routes.predicate.nodes import PathStep
    from routes.predicate.xml_document import XmlElement

__all__ = [
    "BOUNDS",
    "BYTE_ORDER_MARK",
    "NO_ORIGIN",
    "SURROGATE",
    "Body",
    "BodyDocument",
    "BodyOrigin",
    "Bounds",
    "DocumentReader",
    "UnreadableBodyError",
    "body_path",
    "nesting",
    "read_json",
]

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_LEVELS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_OTHERS = bytes(set(range(256)) - _LEVELS.keys())
SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Bounds:
    """Sizes beyond which a body is not read."""

    size: int = 1 << 20
    """Bytes of a body."""
    depth: int = 100
    """Objects and arrays around a value."""
    elements: int = 10_000
    """Elements that a path with `[*]` names."""


BOUNDS = Bounds()


@dataclass(frozen=True, slots=True)
class BodyDocument:
    """Content of a body with a schema."""

    format: str
    """Name of the schema's format in a registry: AVRO, PROTOBUF or JSON."""
    content: bytes
    """The content as JSON text."""


@dataclass(frozen=True, slots=True)
class BodyOrigin:
    """Facts that a message tells of its body, by which the schema of a bare value is known."""

    source: str
    """Name of the source that received the message; empty: it came through no source."""
    kind: str
    """Kind of the body (`engine.message.BodyType`)."""


NO_ORIGIN = BodyOrigin("", "")


class UnreadableBodyError(ValueError):
    """Error for a body whose schema is not known, or that is not a value of it."""


class DocumentReader(Protocol):
    """Reader of bodies with a schema: bare values of sources that have one, and Confluent's wire format."""

    def has_schema(self, body: bytes, origin: BodyOrigin) -> bool:
        """Returns True if a body has a schema, or should have one."""

    def document(self, body: bytes, origin: BodyOrigin) -> BodyDocument:
        """Returns the content of a body with a schema; raises UnreadableBodyError with the reason if it has none."""


class _NumberText(str):
    """A number as it is written."""

    __slots__ = ()


class Body:
    """The body of one message, which is read when a predicate first asks for it."""

    def __init__(
        self,
        content: bytes | None,
        bounds: Bounds = BOUNDS,
        documents: DocumentReader | None = None,
        origin: BodyOrigin = NO_ORIGIN,
    ) -> None:
        """Creates it from a body's bytes; None for a message without a body.

        Without `documents`, bodies with a schema have no values.
        """
        self._given = content
        self._read = content if content is not None and len(content) <= bounds.size else None
        """The body; None if there is none to be read."""
        self._bounds = bounds
        self._documents = documents
        self._origin = origin

    @property
    def text(self) -> str | None:
        """The whole body; None if it is larger than the bounds, or is not UTF-8."""
        if self._read is None:
            return None
        try:
            return self._read.decode()
        except UnicodeDecodeError:
            return None

    @property
    def has_schema(self) -> bool:
        """True if the body has a schema, or should have one."""
        return self._document is not None

    def fault(self, body_format: DocumentFormat) -> str | None:
        """Returns the reason why the body cannot be read as a format; None if it can."""
        if self._given is None:
            return "there is no body"
        if self._read is None:
            return f"the body has more than {self._bounds.size:,} bytes"
        is_not = f"the body is not {body_format.upper()}, or is nested more than {self._bounds.depth} deep"
        if body_format is DocumentFormat.XML:
            return is_not if self._xml is None else None
        document = self._document
        if isinstance(document, str):
            return document
        if body_format.has_schema and document is None:
            return "the body has no schema: its first byte is not 0, as in Confluent's wire format"
        if document is not None and document.format != body_format.upper():
            return f"the body is a value with a schema of {document.format} and not of {body_format.upper()}"
        return is_not if self._json is None else None

    def values(self, path: ValuePath) -> Iterator[str | bool | Decimal | None]:
        """Yields the values that a path names: one, None if there is none; of a repeated path those of each element.

        A repeated path that names more values than the bounds allow ends with None.
        """
        return (value for value, _ in self.places(path))

    def places(self, path: ValuePath) -> Iterator[tuple[str | bool | Decimal | None, ValuePath]]:
        """Yields what `values` does, each value with the path that names it alone."""
        left = self._bounds.elements
        for found in self._all_places(path):
            if left == 0 and path.is_repeated:
                yield None, path
                return
            left -= 1
            yield found

    def text_under(self, path: ValuePath) -> str | None:
        """Returns the value that a path names as text, the first of several; None if there is none.

        Equal numbers have equal texts: digits without an exponent, and without zeros at their end.
        """
        value = next(self.values(path), None)
        match value:
            case bool():
                return str(value).lower()
            case Decimal():
                return f"{value:f}"
        return value

    @cached_property
    def _document(self) -> BodyDocument | str | None:
        """The content of a body with a schema; the reason if it cannot be read; None for a body without a schema."""
        content = self._read
        if content is None or self._documents is None or not self._documents.has_schema(content, self._origin):
            return None
        try:
            return self._documents.document(content, self._origin)
        except UnreadableBodyError as error:
            return str(error)

    @cached_property
    def _json(self) -> tuple[Any] | None:
        """The JSON document in a tuple; None if there is none."""
        document = self._document
        content = document.content if isinstance(document, BodyDocument) else None if document else self._read
        return None if content is None else read_json(content, self._bounds)

    @cached_property
    def _xml(self) -> XmlElement | None:
        return None if self._read is None else read_xml(self._read, self._bounds.depth)

    def _all_places(self, path: ValuePath) -> Iterator[tuple[str | bool | Decimal | None, ValuePath]]:
        if isinstance(path, XmlPath):
            return xml_places(self._xml, path)
        found = _select(None if self._json is None else self._json[0], path.steps)
        return ((_scalar(value), BodyPath(steps)) for value, steps in found)


@cache
def body_path(name: str) -> ValuePath | None:
    """Returns the path that a name of the routing language spells; None for the name of a field or property."""
    if not name.startswith(PATHS):
        return None
    from routes.predicate import parser

    root = parser.parse(f"{name} IS NULL").root
    return root.operand if isinstance(root, IsNull) and isinstance(root.operand, ValuePath) else None


def read_json(content: bytes, bounds: Bounds) -> tuple[Any] | None:
    """Returns a JSON document in a tuple, its numbers as they are written; None for what is not JSON, or too deep."""
    if nesting(content) > bounds.depth:
        return None
    try:
        return (_DECODER.decode(content.removeprefix(BYTE_ORDER_MARK).decode()),)
    except ValueError:
        return None


def nesting(content: bytes) -> int:
    """Number of the objects and arrays within each other in a JSON document, whatever it holds."""
    brackets = _STRING.sub(b"", content).translate(None, _OTHERS)
    return max(accumulate(map(_LEVELS.__getitem__, brackets), initial=0))


def _refuse(name: str) -> Any:
    raise ValueError(name)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {SURROGATE.sub("\ufffd", name): value for name, value in pairs}


_DECODER = json.JSONDecoder(
    object_pairs_hook=_members, parse_int=_NumberText, parse_float=_NumberText, parse_constant=_refuse
)


def _select(
    value: Any, steps: Sequence[PathStep], before: tuple[PathStep, ...] = ()
) -> Iterator[tuple[Any, tuple[PathStep, ...]]]:
    """Yields the values under the steps, each with the steps that lead to it alone."""
    for index, step in enumerate(steps):
        if step is None:
            for number, element in enumerate(value if isinstance(value, list) else ()):
                yield from _select(element, steps[index + 1 :], (*before, *steps[:index], number))
            return
        if isinstance(step, int):
            is_there = isinstance(value, list) and -len(value) <= step < len(value)
            value = value[step] if is_there else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    yield value, (*before, *steps)


def _scalar(value: Any) -> str | bool | Decimal | None:
    if isinstance(value, _NumberText):
        return decimal(value)
    if isinstance(value, str):
        # Half of a character beyond 16 bits, written as an escape, stands for nothing.
        return SURROGATE.sub("\ufffd", value)
    return value if isinstance(value, bool) else None
