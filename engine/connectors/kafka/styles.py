"""Conversion of published records' headers, in any style of `routing.headers`, to the spelling of the journal.

`engine.router.headers` has the other direction.
"""

from __future__ import annotations

import base64
import struct
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from engine.message import TYPES, Record
from routes.properties import HEADER_FIELDS, SEED_NAMES, JmsType, Property, encode_types

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["as_text"]

_JMS = "jms."
_STANDARD = "jms.JMS"
_INTEGERS: Mapping[str, str] = {JmsType.BYTE: ">b", JmsType.SHORT: ">h", JmsType.INT: ">i", JmsType.LONG: ">q"}
_FLOATS: Mapping[str, str] = {JmsType.FLOAT: ">f", JmsType.DOUBLE: ">d"}
_KINDS = {kind.value: kind for kind in JmsType}

Header = tuple[str, bytes | None]


def as_text(record: Record) -> Record:
    """Returns the record with its headers in style `text`.

    A header such as `jms.int.amount` means style `typed`, since no JMS name has a dot. `jms.CorrelationId` means style
    `short` if no header of the record is named `jms.JMS…`; otherwise it is a property of that name.
    """
    names = [name for name, _ in record.headers if name.startswith(_JMS)]
    if any(name.partition(".")[2].partition(".")[1] for name in names):
        return Record(record.key, record.value, _from_typed(record.headers))
    if names and not any(name.startswith(_STANDARD) for name in names):
        return Record(record.key, record.value, tuple((_long(name), value) for name, value in record.headers))
    return record


def _long(name: str) -> str:
    """Returns the header name of style `text` for one of style `short`: `jms.JMSMessageID` for `jms.MessageId`."""
    known = SEED_NAMES.get(name.removeprefix(_JMS)) if name.startswith(_JMS) else None
    return name if known is None else _JMS + known


def _from_typed(headers: tuple[Header, ...]) -> tuple[Header, ...]:
    """Returns headers of style `typed` in style `text`, with the types in a header of their own.

    If the record already has that header from a bridge, it stays: a bridge lists no type for an untyped property, which
    style `typed` publishes as a string.
    """
    found: list[Header] = []
    types: list[tuple[str, JmsType]] = []
    for name, value in headers:
        kind, dot, bare = name.removeprefix(_JMS).partition(".")
        if not name.startswith(_JMS) or not dot or kind not in _KINDS or value is None:
            found.append((name, value))
            continue
        found.append((_JMS + bare, _decoded(value, _KINDS[kind])))
        if bare not in HEADER_FIELDS:
            types.append((bare, _KINDS[kind]))
    if types and all(name != TYPES for name, _ in headers):
        found.append((TYPES, encode_types(types).encode("utf-8", "replace")))
    return tuple(found)


def _decoded(value: bytes, kind: JmsType) -> bytes:
    """Returns a binary value as text; a value that is not valid for its type stays as it is."""
    try:
        if kind in _INTEGERS:
            return str(struct.unpack(_INTEGERS[kind], value)[0]).encode()
        if kind in _FLOATS:
            return _shown(struct.unpack(_FLOATS[kind], value)[0], kind).encode()
    except struct.error:
        return value
    return base64.b64encode(value) if kind is JmsType.BYTES else value


def _shown(number: float, kind: JmsType) -> str:
    """Formats a number as `Property.text` does; a float as the shortest text that gives the same float."""
    if not isfinite(number):
        return Property.of(number).text
    return repr(float(str(np.float32(number))) if kind is JmsType.FLOAT else number)
