"""JSON of XML documents: `jmsbridge.predicate.XmlToJson` (`jvm/spark`) makes the same of the same documents."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeAlias

from routes.predicate.bodies import BOUNDS, Bounds
from routes.predicate.xml_document import XmlElement, read_xml

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["xml_to_json"]

_BLANKS = " \t\r\n"
_Json: TypeAlias = "str | list[_Json] | dict[str, _Json]"


def xml_to_json(content: bytes, bounds: Bounds = BOUNDS) -> bytes | None:
    """Returns the JSON of a document; None for what is not XML, has a DTD, is too large or is nested too deeply.

    An element is an object with its attributes (`@name`), its child elements (an array for several of a name) and its
    text (`#text`), if that has more than blanks; without attributes and child elements it is its text.
    """
    document = read_xml(content, bounds.depth) if len(content) <= bounds.size else None
    if document is None:
        return None
    return json.dumps(_children(document, {}), ensure_ascii=False, separators=(",", ":")).encode()


def _value(element: XmlElement) -> _Json:
    attributes: dict[str, _Json] = {f"@{name}": text for name, text in element.attributes.items()}
    members = _children(element, attributes)
    text = element.text(is_own=True) or ""
    if not members:
        return text
    return members | {"#text": text} if text.strip(_BLANKS) else members


def _children(element: XmlElement, before: Mapping[str, _Json]) -> dict[str, _Json]:
    members = dict(before)
    for child in (part for part in element.content if isinstance(part, XmlElement)):
        value, former = _value(child), members.get(child.name)
        if isinstance(former, list):
            former.append(value)
        else:
            members[child.name] = value if former is None else [former, value]
    return members
