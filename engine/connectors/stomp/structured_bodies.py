"""Bodies of map and object messages as ActiveMQ Classic writes them into a frame: XML by XStream, on request.

A source asks for them with `transformation: jms-xml`; the frame then says `jms-map-xml` or `jms-object-xml`. The XML is
that of XStream for simple values, read by patterns: an XML parser would take more (entities, DTDs) than may come.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.jms_values import CHAR, NULL, MapEntry, StructureError, encode_map, encode_object
from engine.message import BodyType
from routes.properties import JmsType

if TYPE_CHECKING:
    from engine.message import Message

__all__ = ["MAP", "OBJECT", "structured"]

MAP, OBJECT = "jms-map-xml", "jms-object-xml"
"""Values of the header `transformation` of a frame whose body was converted."""

_VALUE = r"<(?P<tag>[a-z-]+)(?: null=\"true\")?(?:/>|>(?P<text>[^<]*)</(?P=tag)>)"
_SINGLE = re.compile(rf"\s*{_VALUE}\s*")
_ENTRY = re.compile(rf"\s*<entry>\s*<string(?:/>|>(?P<name>[^<]*)</string>)\s*{_VALUE}\s*</entry>")
_MAP = re.compile(r"\s*<map(?:/>|>(?P<entries>.*)</map>)\s*", re.DOTALL)
_ESCAPE = re.compile(r"&(?:#x(?P<code>[0-9a-fA-F]{1,6})|(?P<name>lt|gt|amp|quot|apos));")
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_BOOLEANS = {"true": True, "false": False}
_MOST_CODE = 0x10FFFF


def structured(message: Message, transformation: str) -> Message:
    """Returns the message with the values of its XML body; `transformation` is `MAP` or `OBJECT`.

    Raises:
        StructureError: the body is not such XML, or has a value that no value of a JMS message can be.
    """
    xml = message.body.decode("utf-8", "replace")
    if transformation == MAP:
        # The order of a Java map is not a fact of the message, and need not be the same when it is delivered again.
        body, types = encode_map(dict(sorted(_entries(xml).items())))
        return replace(message, body=body, body_type=BodyType.MAP, body_types=types)
    match = _SINGLE.fullmatch(xml)
    if match is None:
        raise StructureError("an object that is not a single value")
    body, types = encode_object(_value(match))
    return replace(message, body=body, body_type=BodyType.OBJECT, body_types=types)


def _entries(xml: str) -> dict[str, MapEntry]:
    match = _MAP.fullmatch(xml)
    if match is None:
        raise StructureError("a map message whose XML is not a map")
    text, position = match["entries"] or "", 0
    entries: dict[str, MapEntry] = {}
    while entry := _ENTRY.match(text, position):
        entries[_unescaped(entry["name"] or "")] = _value(entry)
        position = entry.end()
    if text[position:].strip():
        raise StructureError(f"a map message with a value that is not simple, behind {len(entries)} others")
    return entries


def _value(match: re.Match[str]) -> MapEntry:
    tag, text = match["tag"], match["text"] or ""
    if tag not in _READERS:
        raise StructureError(f"a value of type {tag[:40]!r}, which no value of a JMS message can be")
    try:
        return _READERS[tag](text)
    except (KeyError, ValueError) as error:
        raise StructureError(f"a value that is not of type {tag}: {text[:40]!r}") from error


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_char, text) if "&" in text else text


def _char(match: re.Match[str]) -> str:
    if match["name"]:
        return _NAMED[match["name"]]
    code = int(match["code"], 16)
    return chr(code) if code <= _MOST_CODE else "\ufffd"


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except binascii.Error as error:
        raise ValueError(text[:40]) from error


_READERS: Mapping[str, Callable[[str], MapEntry]] = {
    "string": lambda text: MapEntry(JmsType.STRING.value, _unescaped(text)),
    "boolean": lambda text: MapEntry(JmsType.BOOLEAN.value, _BOOLEANS[text]),
    # An absent character is NUL, which XML cannot hold.
    "char": lambda text: MapEntry(CHAR, _unescaped(text) or "\0"),
    "byte": lambda text: MapEntry(JmsType.BYTE.value, int(text)),
    "short": lambda text: MapEntry(JmsType.SHORT.value, int(text)),
    "int": lambda text: MapEntry(JmsType.INT.value, int(text)),
    "long": lambda text: MapEntry(JmsType.LONG.value, int(text)),
    "float": lambda text: MapEntry(JmsType.FLOAT.value, float(text)),
    "double": lambda text: MapEntry(JmsType.DOUBLE.value, float(text)),
    "byte-array": lambda text: MapEntry(JmsType.BYTES.value, _bytes(text)),
    "null": lambda _: MapEntry(NULL, None),
}
"""Readers of texts by XStream's names of the types that values of JMS messages have."""
