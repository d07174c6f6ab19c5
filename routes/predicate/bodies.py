"""Bodies as predicates see them: the values under paths into JSON, and the whole body as text.

A body that is not JSON has no values, as a message without a property has none. So has one that exceeds `Bounds`:
whatever a body holds, reading it takes time and memory in proportion to its size. `jmsbridge.predicate.Body`
(`jvm/spark`) reads the same bodies alike.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any

from routes.predicate.nodes import BODY, BodyPath, IsNull

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from routes.predicate.nodes import PathStep

__all__ = ["BOUNDS", "Body", "Bounds", "body_path", "number"]

DIGITS = 38
"""Most significant digits of a number that is compared; one with more has no value."""
EXPONENT = 6_144
"""Greatest power of ten of a number's first digit, and of its inverse, as decimals of 128 bits have it."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"?|[\[{]|[\]}]', re.DOTALL)
_NUMBER = re.compile(r"(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?)0*([0-9]*))?")
_SURROGATE = re.compile("[\ud800-\udfff]")


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


class _NumberText(str):
    """A number as it is written."""

    __slots__ = ()


class Body:
    """The body of one message, which is read when a predicate first asks for it."""

    def __init__(self, content: bytes | None, bounds: Bounds = BOUNDS) -> None:
        """Creates it from a body's bytes; None for a message without a body."""
        self._content = content
        self._bounds = bounds
        self._document: Any = None
        self._is_read = False

    @property
    def text(self) -> str | None:
        """The whole body; None if it is larger than the bounds, or is not UTF-8."""
        if self._content is None or len(self._content) > self._bounds.size:
            return None
        try:
            return self._content.decode()
        except UnicodeDecodeError:
            return None

    def values(self, steps: Sequence[PathStep]) -> Iterator[str | bool | Decimal | None]:
        """Yields the values that a path names: one, None if there is none; with `[*]` that of each element.

        A path with `[*]` into an array of more elements than the bounds allow ends with None.
        """
        if not self._is_read:
            self._is_read, self._document = True, self._parsed()
        left = self._bounds.elements
        for found in _select(self._document, steps):
            if left == 0 and None in steps:
                yield None
                return
            left -= 1
            yield _scalar(found)

    def text_under(self, steps: Sequence[PathStep]) -> str | None:
        """Returns the value that a path without `[*]` names as text; None if there is none.

        Equal numbers have equal texts: digits without an exponent, and without zeros at their end.
        """
        (value,) = self.values(steps)
        match value:
            case bool():
                return str(value).lower()
            case Decimal():
                return f"{value:f}"
        return value

    def _parsed(self) -> Any:
        content = self._content
        if content is None or len(content) > self._bounds.size or _depth(content) > self._bounds.depth:
            return None
        try:
            text = content.removeprefix(_BYTE_ORDER_MARK).decode()
            return json.loads(text, parse_int=_NumberText, parse_float=_NumberText, parse_constant=_refuse)
        except ValueError:
            return None


@cache
def body_path(name: str) -> BodyPath | None:
    """Returns the path that a name of the routing language spells; None for the name of a field or property."""
    if not name.startswith(BODY):
        return None
    from routes.predicate import parser

    root = parser.parse(f"{name} IS NULL").root
    return root.operand if isinstance(root, IsNull) and isinstance(root.operand, BodyPath) else None


def number(text: str) -> Decimal | None:
    """Returns the number that a JSON text writes; None beyond `DIGITS` and `EXPONENT`. Zero has no sign."""
    written = _NUMBER.fullmatch(text)
    if written is None:
        return None
    sign, whole, fraction, exponent_sign, exponent_digits = written.groups("")
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return Decimal(0)
    exponent = -len(fraction)
    significant = digits.rstrip("0")
    if len(significant) > DIGITS or len(exponent_digits) > len(str(EXPONENT)) + len(str(len(text))):
        return None
    exponent += int(f"{exponent_sign}{exponent_digits or 0}") + len(digits) - len(significant)
    if abs(exponent + len(significant) - 1) > EXPONENT:
        return None
    return Decimal((int(sign == "-"), tuple(map(int, significant)), exponent))


def _depth(content: bytes) -> int:
    depth = deepest = 0
    for token in _TOKEN.finditer(content):
        sign = content[token.start()]
        if sign in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif sign in b"]}":
            depth -= 1
    return deepest


def _refuse(name: str) -> Any:
    raise ValueError(name)


def _select(value: Any, steps: Sequence[PathStep]) -> Iterator[Any]:
    for index, step in enumerate(steps):
        if step is None:
            for element in value if isinstance(value, list) else ():
                yield from _select(element, steps[index + 1 :])
            return
        if isinstance(step, int):
            is_there = isinstance(value, list) and -len(value) <= step < len(value)
            value = value[step] if is_there else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    yield value


def _scalar(value: Any) -> str | bool | Decimal | None:
    if isinstance(value, _NumberText):
        return number(value)
    if isinstance(value, str):
        # Half of a character beyond 16 bits, written as an escape, stands for nothing.
        return _SURROGATE.sub("\ufffd", value)
    return value if isinstance(value, bool) else None
