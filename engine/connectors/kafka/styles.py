"""Headers of published records back to how the journal spells them, whichever style of `routing.headers` they have.

`engine.router.headers` is the way there.
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
    """The record with its headers in style `text`.

    `jms.int.amount` is of style `typed`, since no JMS name has a dot. `jms.CorrelationId` is of style `short` where no
    header of the record is called `jms.JMS…`; else it is a property of that name.
    """
    names = [name for name, _ in record.headers if name.startswith(_JMS)]
    if any(name.partition(".")[2].partition(".")[1] for name in names):
        return Record(record.key, record.value, _from_typed(record.headers))
    if names and not any(name.startswith(_STANDARD) for name in names):
        return Record(record.key, record.value, tuple((_long(name), value) for name, value in record.headers))
    return record


def _long(name: str) -> str:
    """`jms.MessageId` as `jms.JMSMessageID`."""
    known = SEED_NAMES.get(name.removeprefix(_JMS)) if name.startswith(_JMS) else None
    return name if known is None else _JMS + known


def _from_typed(headers: tuple[Header, ...]) -> tuple[Header, ...]:
    """With the types apart, unless a bridge has written them beside: to it, what has no type is a string, too."""
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
    """The text of a binary value; what is no such value stays as it is."""
    try:
        if kind in _INTEGERS:
            return str(struct.unpack(_INTEGERS[kind], value)[0]).encode()
        if kind in _FLOATS:
            return _shown(struct.unpack(_FLOATS[kind], value)[0], kind).encode()
    except struct.error:
        return value
    return base64.b64encode(value) if kind is JmsType.BYTES else value


def _shown(number: float, kind: JmsType) -> str:
    """As `Property.text` has it; of a float the shortest that gives the same float."""
    if not isfinite(number):
        return Property.of(number).text
    return repr(float(str(np.float32(number))) if kind is JmsType.FLOAT else number)
