"""Headers of one published record, computed in Python without Spark, for `explain`.

The router itself uses `router.headers`; a test checks that both agree.
"""

from __future__ import annotations

import base64
import re
import struct
from typing import TYPE_CHECKING

from engine.message import ORIGIN, POSITION, TYPES, Record
from routes.model import HeaderStyle
from routes.properties import HEADER_FIELDS, SEED_NAMES, JmsType, decode_types

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["published_headers"]

_JMS = "jms."
_SHORT = {name: short for short, name in SEED_NAMES.items()}
_INTEGERS = {JmsType.BYTE: ">b", JmsType.SHORT: ">h", JmsType.INT: ">i", JmsType.LONG: ">q"}
_FLOATS = {JmsType.FLOAT: ">f", JmsType.DOUBLE: ">d"}
_BASE64 = re.compile(r"([A-Za-z0-9+/]*)(={0,2})")
_BLANKS = re.compile(r"\s")
_INTEGER = re.compile(r"\s*[+-]?[0-9]+\s*")

Headers = tuple[tuple[str, bytes | None], ...]


def published_headers(record: Record, style: HeaderStyle, bridge_id: str, position: str) -> Headers:
    """The record's headers in a style, followed by this bridge as origin and the journal position."""
    if style is HeaderStyle.TEXT:
        headers = record.headers
    elif style is HeaderStyle.SHORT:
        headers = tuple((_short(name), value) for name, value in record.headers)
    else:
        types = decode_types(record.header(TYPES) or "")
        headers = tuple(_typed(name, value, types) for name, value in record.headers)
    return (*headers, (ORIGIN, bridge_id.encode()), (POSITION, position.encode()))


def _short(name: str) -> str:
    bare = name.removeprefix(_JMS)
    return _JMS + _SHORT[bare] if bare != name and bare in _SHORT else name


def _typed(name: str, value: bytes | None, types: Mapping[str, JmsType]) -> tuple[str, bytes | None]:
    if not name.startswith(_JMS):
        return name, value
    bare = name[len(_JMS) :]
    kind = HEADER_FIELDS.get(bare) or types.get(bare, JmsType.STRING)
    encoded = None if value is None else _encoded(value, kind)
    if encoded is None:
        return f"{_JMS}{JmsType.STRING}.{bare}", value
    return f"{_JMS}{kind}.{bare}", encoded


def _encoded(value: bytes, kind: JmsType) -> bytes | None:
    """The value in Kafka's binary form of the type; None if it does not fit the type."""
    text = value.decode("utf-8", "replace")
    try:
        if kind in _INTEGERS:
            return struct.pack(_INTEGERS[kind], int(text)) if _INTEGER.fullmatch(text) else None
        if kind in _FLOATS:
            return struct.pack(_FLOATS[kind], float(text))
        if kind is JmsType.BYTES:
            return _from_base64(text)
    except OverflowError:
        return struct.pack(_FLOATS[kind], float("-inf" if text.startswith("-") else "inf"))
    except (ValueError, struct.error):
        return None
    return value


def _from_base64(text: str) -> bytes | None:
    """Decodes base64 as Spark does: padding may be missing but not wrong, blanks are ignored; None if invalid."""
    bare = _BLANKS.sub("", text)
    match = _BASE64.fullmatch(bare)
    if match is None or len(match[1]) % 4 == 1 or (match[2] and len(bare) % 4 != 0):
        return None
    return base64.b64decode(match[1] + "=" * (-len(match[1]) % 4))
