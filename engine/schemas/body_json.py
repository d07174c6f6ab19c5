"""JSON of bodies that are encoded with a schema, and the places in it that faults name.

`jmsbridge.serdes.BodyJson` and `jmsbridge.serdes.BodyPlace` (`jvm/spark`) are the same in Java.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Protocol

from engine.printable import printable
from routes.predicate.bodies import BOUNDS, BYTE_ORDER_MARK, SURROGATE, nesting
from routes.predicate.nodes import BodyPath

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "MOST_ENCODED_BYTES",
    "BodyPlace",
    "EncodingSchema",
    "UnfitBodyError",
    "WrittenNumber",
    "read_body",
    "whole_text",
    "written_number",
]

_MOST_BYTES = 4 << 20
MOST_ENCODED_BYTES = 16 << 20
"""Most bytes of an encoded body."""
_MOST_CHARACTERS = 1_000
_MOST_EXPONENT_DIGITS = 9
_MOST_SHOWN = 40
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?([0-9]+))?")
"""A number in a body, or in a text of XML: ASCII digits, no blanks."""


class UnfitBodyError(ValueError):
    """Error for a body that does not fit its schema."""


class EncodingSchema(Protocol):
    """A schema as a registry keeps it."""

    @property
    def text(self) -> str:
        """JSON for Avro; for Protobuf a FileDescriptorProto in base64."""

    @property
    def references(self) -> Sequence[EncodingReference]:
        """The schemas that it names, those that others need first."""


class EncodingReference(Protocol):
    """Schema under the name by which another one refers to it."""

    @property
    def name(self) -> str:
        """The name in the other schema."""

    @property
    def schema(self) -> EncodingSchema:
        """The schema."""


class WrittenNumber(str):
    """A number as it is written."""

    __slots__ = ()


def read_body(content: bytes) -> Any:
    """Returns the document, with numbers as they are written; of several members with one name the last counts.

    Raises UnfitBodyError if there is none, or it exceeds the bounds.
    """
    if len(content) > _MOST_BYTES:
        msg = f"the body has more than {_MOST_BYTES:,} bytes"
        raise UnfitBodyError(msg)
    try:
        if nesting(content) <= BOUNDS.depth:
            text = content.removeprefix(BYTE_ORDER_MARK).decode()
            return json.loads(
                text, parse_int=_number, parse_float=_number, parse_constant=_number, object_pairs_hook=_object
            )
    except ValueError as error:
        raise UnfitBodyError(_IS_NOT) from error
    raise UnfitBodyError(_IS_NOT)


_IS_NOT = (
    f"the body is not JSON, is nested more than {BOUNDS.depth} deep, or has a number of more than"
    f" {_MOST_CHARACTERS:,} characters or an exponent of more than {_MOST_EXPONENT_DIGITS} digits"
)


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    return {whole_text(name): value for name, value in members}


def _number(text: str) -> WrittenNumber:
    written = written_number(text)
    if written is None:
        raise ValueError(text[:_MOST_SHOWN])
    return written


def written_number(text: str) -> WrittenNumber | None:
    """Returns the number that a text writes; None for other texts."""
    match = _NUMBER.fullmatch(text) if len(text) <= _MOST_CHARACTERS else None
    return WrittenNumber(text) if match and len(match[1] or "") <= _MOST_EXPONENT_DIGITS else None


def whole_text(text: str) -> str:
    """Returns the text with a replacement for each half of a character that stands alone."""
    return SURROGATE.sub("\ufffd", text)


class BodyPlace:
    """Place of a value in a body, which is spelled as in the routing language when a fault names it."""

    __slots__ = ("_parent", "_step")

    def __init__(self, parent: BodyPlace | None = None, step: str | int = "") -> None:
        """Creates the place of the body, or of a value in one at another place."""
        self._parent = parent
        self._step = step

    def fault(self, reason: str) -> UnfitBodyError:
        """The error of a value that does not fit."""
        steps = []
        place = self
        while place._parent is not None:
            steps.append(_shortened(place._step) if isinstance(place._step, str) else place._step)
            place = place._parent
        return UnfitBodyError(f"{BodyPath(tuple(reversed(steps)))} does not fit: {reason}")

    def is_not(self, value: Any, wanted: str) -> UnfitBodyError:
        """The error of a value that is not what the schema wants."""
        return self.fault(f"{_shown(value)} is not {wanted}")


def _shown(value: Any) -> str:
    match value:
        case dict():
            return "an object"
        case list():
            return "an array"
        case WrittenNumber():
            return _shortened(value)
        case str():
            return f"'{_shortened(value)}'"
    return json.dumps(value)


def _shortened(text: str) -> str:
    cut = text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
    return printable(whole_text(cut))
