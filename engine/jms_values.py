"""Values of JMS messages in the form that the canonical message has: structured bodies, and texts of properties.

The body of a map, stream or object message is plain JSON: an object for a map, an array for a stream, or a single
value. A route with `conv.body=json` publishes it as it is. Types that JSON cannot tell (int or long, float or double,
char, bytes as base64) are in `Message.body_types`: `name=type` pairs for a map, types in order for a stream, one type
for an object. Decoding is tolerant: where a type is missing or does not fit, the value has the type that JSON gives it.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import isfinite, isnan
from typing import Any, NamedTuple
from urllib.parse import unquote

from routes.predicate.numbers import INTEGER_TEXT, NUMBER_TEXT, SPECIAL_TEXT
from routes.properties import JmsType, Property, encode_type_name

__all__ = [
    "BOOLEANS",
    "CHAR",
    "LARGEST_FLOAT",
    "NULL",
    "PARSERS",
    "MapEntry",
    "StructureError",
    "decode_map",
    "decode_object",
    "decode_stream",
    "encode_map",
    "encode_object",
    "encode_stream",
    "shown",
    "single",
]

CHAR = "char"
"""Type of a character, which bodies have beside the types of properties."""
NULL = "null"
LARGEST_FLOAT = 3.4028235677973366e38
"""Smallest number that rounds to infinity in single precision."""

Plain = bool | int | float | str | bytes | None


class StructureError(ValueError):
    """A body is not the JSON that its message type requires. The text is one line for users."""


class MapEntry(NamedTuple):
    """A value of a body, with its type."""

    kind: str
    """Value of a `JmsType`, or `CHAR` or `NULL`."""
    value: Plain


BOOLEAN, BYTE, SHORT, INT, LONG, FLOAT, DOUBLE, STRING, BYTES = (kind.value for kind in JmsType)
_TYPES = frozenset((*(kind.value for kind in JmsType), CHAR, NULL))
_RANGES = {BYTE: range(-128, 128), SHORT: range(-(1 << 15), 1 << 15), INT: range(-(1 << 31), 1 << 31)}
_RANGES[LONG] = range(-(1 << 63), 1 << 63)
_SPECIAL = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False)
_LONGEST_KNOWN = 1000


def encode_map(entries: Mapping[str, MapEntry]) -> tuple[bytes, str]:
    """Returns the body and the body types of a map message."""
    body = {name: _plain(entry) for name, entry in entries.items()}
    return _text(body), ",".join([f"{encode_type_name(name)}={entry.kind}" for name, entry in entries.items()])


def encode_stream(entries: Sequence[MapEntry]) -> tuple[bytes, str]:
    """Returns the body and the body types of a stream message."""
    return _text([_plain(entry) for entry in entries]), ",".join([entry.kind for entry in entries])


def encode_object(entry: MapEntry) -> tuple[bytes, str]:
    """Returns the body and the body type of an object message whose object is a single value."""
    return _text(_plain(entry)), entry.kind


def decode_map(body: bytes, types: str) -> dict[str, MapEntry]:
    """Returns the entries of a map message by name.

    Raises:
        StructureError: the body is not a JSON object, or holds a value that has no JMS type.
    """
    document = _json(body)
    if not isinstance(document, dict):
        raise StructureError(f"the body of a map message is a JSON object, not {_json_type(document)}")
    declared = (_map_types if len(types) <= _LONGEST_KNOWN else _read_map_types)(types)
    return {name: _entry(value, declared.get(name, ""), repr(name)[:100]) for name, value in document.items()}


def decode_stream(body: bytes, types: str) -> list[MapEntry]:
    """Returns the entries of a stream message.

    Raises:
        StructureError: the body is not a JSON array, or holds a value that has no JMS type.
    """
    document = _json(body)
    if not isinstance(document, list):
        raise StructureError(f"the body of a stream message is a JSON array, not {_json_type(document)}")
    declared = types.split(",") if types else []
    declared += [""] * (len(document) - len(declared))
    return [_entry(value, kind, str(at)) for at, (value, kind) in enumerate(zip(document, declared, strict=False))]


def decode_object(body: bytes, types: str) -> MapEntry:
    """Returns the single value of an object message.

    Raises:
        StructureError: the body is not JSON, or its value has no JMS type.
    """
    return _entry(_json(body), types, "of the object")


def _plain(entry: MapEntry) -> bool | int | float | str | None:
    """Returns the JSON form of a value."""
    kind, value = entry
    if kind == BYTES and isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, float):
        if not isfinite(value):
            return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return single(value) if kind == FLOAT else value
    assert not isinstance(value, bytes)
    return value


def single(value: float) -> float:
    """Rounds to single precision; returns the double with the shortest text for that: 0.1 for 0.10000000149."""
    # Imported by those that have such a value: it takes a fifth of a second.
    import numpy as np

    return float(str(np.float32(value)))


def _text(value: object) -> bytes:
    return _JSON.encode(value).encode("utf-8", "replace")


def _constant(name: str) -> object:
    raise ValueError(f"{name} is not a JSON number")


_DECODER = json.JSONDecoder(parse_constant=_constant)


def _json(body: bytes) -> Any:
    try:
        return _DECODER.decode(body.decode())
    except UnicodeDecodeError as error:
        raise StructureError("the body is not JSON: it is not UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise StructureError(f"the body is not JSON: {str(error)[:200]}") from error


def _entry(value: Any, declared: str, name: str) -> MapEntry:
    read = _READERS.get(declared)
    if read is not None and (typed := read(value)) is not None:
        return typed
    if value is None:
        return _NULL
    if isinstance(value, bool):
        return MapEntry(BOOLEAN, value)
    if isinstance(value, int):
        kind = INT if value in _RANGES[INT] else LONG
        if value in _RANGES[LONG]:
            return MapEntry(kind, value)
        raise StructureError(f"value {name} is a number of more than 64 bits")
    if isinstance(value, float):
        return MapEntry(DOUBLE, value)
    if isinstance(value, str):
        return MapEntry(STRING, value)
    raise StructureError(f"value {name} is {_json_type(value)}, which no value of a JMS message can be")


def _integer(kind: str) -> Callable[[Any], MapEntry | None]:
    numbers = _RANGES[kind]
    return lambda value: MapEntry(kind, value) if type(value) is int and value in numbers else None


def _real(kind: str) -> Callable[[Any], MapEntry | None]:
    def read(value: Any) -> MapEntry | None:
        if type(value) is str and value in _SPECIAL:
            return MapEntry(kind, _SPECIAL[value])
        if type(value) is int and value in _RANGES[LONG]:
            value = float(value)
        if type(value) is not float or (kind == FLOAT and isfinite(value) and abs(value) >= LARGEST_FLOAT):
            return None
        return MapEntry(kind, value)

    return read


def _bytes(value: Any) -> MapEntry | None:
    if type(value) is not str:
        return None
    try:
        return MapEntry(BYTES, base64.b64decode(value, validate=True))
    except (binascii.Error, ValueError):
        return None


def _char(value: Any) -> MapEntry | None:
    return MapEntry(CHAR, value) if type(value) is str and len(value) == 1 else None


_NULL = MapEntry(NULL, None)
_READERS: Mapping[str, Callable[[Any], MapEntry | None]] = {
    **{kind: _integer(kind) for kind in (BYTE, SHORT, INT, LONG)},
    **{kind: _real(kind) for kind in (FLOAT, DOUBLE)},
    BYTES: _bytes,
    CHAR: _char,
}
"""Readers of JSON values by declared type; a reader returns None for a value that does not fit. JSON itself tells
the other types."""


def _read_map_types(types: str) -> Mapping[str, str]:
    pairs = (pair.rpartition("=") for pair in types.split(","))
    return {unquote(name): kind for name, found, kind in pairs if found and kind in _TYPES}


_map_types = lru_cache(1000)(_read_map_types)
"""Cached `_read_map_types`: messages of one kind have the same entries."""


def _json_type(value: object) -> str:
    return {dict: "an object", list: "an array", str: "a text", type(None): "null"}.get(type(value), "a number")


def _whole(bits: int) -> Callable[[str], int]:
    bounds = range(-(1 << bits - 1), 1 << bits - 1)

    def parse(text: str) -> int:
        if not _INTEGER.fullmatch(text) or (number := int(text)) not in bounds:
            raise ValueError(text)
        return number

    return parse


def _real_number(text: str) -> float:
    if not _REAL.fullmatch(text):
        raise ValueError(text)
    return float(text)


_INTEGER = re.compile(INTEGER_TEXT)
_REAL = re.compile(f"{NUMBER_TEXT}|{SPECIAL_TEXT}")
PARSERS: Mapping[JmsType | None, Callable[[str], int | float]] = {
    JmsType.BYTE: _whole(8),
    JmsType.SHORT: _whole(16),
    JmsType.INT: _whole(32),
    JmsType.LONG: _whole(64),
    JmsType.FLOAT: _real_number,
    JmsType.DOUBLE: _real_number,
}
"""Parsers of number texts by JMS type, with the syntax of predicates; ValueError for other texts."""
BOOLEANS: Mapping[str, bool] = {"true": True, "false": False}
"""Boolean values by their lower-case text, as in predicates."""


def shown(number: float) -> str:
    """Formats a float as the text of a property."""
    return repr(number) if isfinite(number) else Property.of(number).text
