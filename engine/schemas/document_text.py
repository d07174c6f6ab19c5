"""JSON text of a body with a schema, of a bounded depth and size (`jmsbridge.serdes.DocumentWriter`)."""

from __future__ import annotations

import json
import struct
import sys
from base64 import b64encode
from decimal import ROUND_UP, Context
from math import frexp, isfinite

from routes.predicate.bodies import UnreadableBodyError

__all__ = ["DocumentText"]

_DEPTH = 100
"""Most objects and arrays within each other."""
_MOST_BYTES = 16 << 20
_MOST_DIGITS = 17
"""Digits with which any double reads back, and so any float."""
_LEAST_NORMAL = sys.float_info.min
_quoted = json.JSONEncoder(ensure_ascii=False).encode


class DocumentText:
    """Text that grows value by value."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._separator = ""
        self._depth = 0
        self._size = 0

    def open(self, bracket: str) -> None:
        """Begins an object or an array; UnreadableBodyError if it is nested too deeply."""
        self._depth += 1
        if self._depth > _DEPTH:
            msg = f"the value is nested more than {_DEPTH} deep"
            raise UnreadableBodyError(msg)
        self.plain(bracket)
        self._separator = ""

    def close(self, bracket: str) -> None:
        """Ends an object or an array."""
        self._depth -= 1
        self._separator = ""
        self.plain(bracket)

    def name(self, name: str) -> None:
        """Writes the name of the field whose value comes next."""
        self.text(name)
        self._separator = ":"

    def text(self, text: str) -> None:
        """Writes a text."""
        self.plain(_quoted(text))

    def data(self, content: bytes) -> None:
        """Writes bytes, in base64."""
        self.plain(f'"{b64encode(content).decode()}"')

    def flag(self, value: bool) -> None:
        """Writes true or false."""
        self.plain("true" if value else "false")

    def floating(self, value: float, kind: str) -> None:
        """Writes the fewest digits that read back as a float ("f") or a double ("d"); null for what is not finite."""
        if not isfinite(value):
            self.plain("null")
            return
        text = _shortest(value, kind)
        # The double of a float's digits has the same digits, and 0.1 is easier to read than 1.0e-01.
        self.plain(repr(float(text)) if kind == "f" else text)

    def plain(self, text: str) -> None:
        """Writes a part of the text as it is: a number, `null` or a bracket."""
        self._size += len(self._separator) + len(text)
        if self._size > _MOST_BYTES:
            _refuse()
        self._parts += (self._separator, text)
        self._separator = ","

    def finished(self) -> bytes:
        """Returns the whole text, in UTF-8."""
        content = "".join(self._parts).encode()
        if len(content) > _MOST_BYTES:
            _refuse()
        return content


def _refuse() -> None:
    msg = f"its content has more than {_MOST_BYTES:,} bytes as JSON"
    raise UnreadableBodyError(msg)


def _shortest(value: float, kind: str) -> str:
    """At least two digits, the nearest ones, as Java writes numbers: 4.9e-324 and not 5e-324."""
    if kind == "d" and (abs(value) >= _LEAST_NORMAL or not value):
        return repr(value)
    written = struct.pack(kind, value)
    is_power = abs(frexp(value)[0]) == 0.5
    for digits in range(2, _MOST_DIGITS + 1):
        if _packed(kind, float(text := f"{value:.{digits - 1}e}")) == written:
            return text
        # Beside a power of two, a number farther from zero may read back where the nearest one does not.
        if is_power and _packed(kind, float(text := _away(value, digits))) == written:
            return text
    return repr(value)


def _away(value: float, digits: int) -> str:
    return str(Context(digits, ROUND_UP).create_decimal_from_float(value))


def _packed(kind: str, value: float) -> bytes | None:
    try:
        return struct.pack(kind, value)
    except OverflowError:
        # Fewer digits of the greatest float are those of a greater one.
        return None
