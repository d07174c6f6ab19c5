"""XML bodies as predicates see them: a tree of elements, with the values that paths name.

Names are local ones, whatever namespace their prefix stands for. A document with a DTD has no values, so that no entity
can make it larger than it is. `jmsbridge.predicate.XmlReader` (`jvm/spark`) reads the same documents alike.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from xml.parsers import expat

from routes.predicate import numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from decimal import Decimal

    from routes.predicate.nodes import XmlPath, XmlStep

__all__ = ["XmlElement", "elements", "is_namespace", "local_name", "parsed", "places", "read_xml", "xml_text"]

_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_LATIN = re.compile(rb"""<\?xml[^>]{0,200}?encoding\s*=\s*["']iso-8859-1["']""", re.IGNORECASE)
_BLANKS = " \t\r\n"


class XmlElement:
    """An element with its attributes, by local name."""

    __slots__ = ("attributes", "content", "end", "name", "start")

    def __init__(self, name: str, attributes: dict[str, str]) -> None:
        self.name = name
        self.attributes = attributes
        self.content: list[str | XmlElement] = []
        """Texts and child elements, in the order of the document."""
        self.start = self.end = 0
        """Bytes of the document's text, in UTF-8, before the start tag and before the end tag."""

    def text(self, *, is_own: bool) -> str | None:
        """Returns the text in the element; if it `is_own`, without that of child elements, None if there is none."""
        if is_own:
            return "".join(part for part in self.content if isinstance(part, str)) or None
        texts: list[str] = []
        waiting: list[str | XmlElement] = [self]
        while waiting:
            part = waiting.pop()
            if isinstance(part, str):
                texts.append(part)
            else:
                waiting.extend(reversed(part.content))
        return "".join(texts)


class _NotXmlError(Exception):
    """Raised for a document that is not read."""


def read_xml(content: bytes, deepest: int) -> XmlElement | None:
    """Returns the document, as an element around the root; None for what is not XML, or is nested more deeply.

    Bytes that are UTF-8 are read as such, whatever the document declares: a text message has lost its encoding. Other
    bytes are UTF-16 if they begin with its mark, or ISO-8859-1 if the document declares it.
    """
    return parsed(xml_text(content), deepest)


def xml_text(content: bytes) -> str:
    """Returns the text of bytes that may be a document, without its mark; empty if they cannot be one."""
    text = _decoded(content) or ""
    # The parser would take bytes with NUL for UTF-16, and skip a second mark.
    return "" if "\0" in text or text.startswith("\ufeff") else text


def places(document: XmlElement | None, path: XmlPath) -> Iterator[tuple[str | Decimal | None, XmlPath]]:
    """Yields the values that a path names, each with the path that names it alone; None and `path` if there is none."""
    is_found = False
    for element, steps in () if document is None else _select(document, path.steps):
        if path.attribute is not None:
            text = element.attributes.get(path.attribute)
        else:
            text = element.text(is_own=path.is_own_text)
        if text is not None:
            is_found = True
            yield numbers.decimal(text.strip(_BLANKS)) if path.is_number else text, replace(path, steps=steps)
    if not is_found:
        yield None, path


def elements(document: XmlElement, path: XmlPath) -> Iterator[XmlElement]:
    """Yields the elements that the steps of a path lead to, in the order of the document."""
    return (element for element, _ in _select(document, path.steps))


def _decoded(content: bytes) -> str | None:
    try:
        if content[:2] in _UTF_16_MARKS:
            return content.decode("utf-16")
        return content.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError:
        return content.decode("iso-8859-1") if _LATIN.match(content) else None


def parsed(text: str, deepest: int) -> XmlElement | None:
    """Returns what `read_xml` does, for the text of a document."""
    document = XmlElement("", {})
    opened = [document]

    def start(name: str, given: list[str]) -> None:
        if len(opened) > deepest:
            raise _NotXmlError
        pairs = zip(given[::2], given[1::2], strict=True)
        attributes: dict[str, str] = {}
        for attribute, value in pairs:
            # Of attributes whose names differ in their prefixes alone the first counts.
            if not is_namespace(attribute):
                attributes.setdefault(local_name(attribute), value)
        element = XmlElement(local_name(name), attributes)
        element.start = parser.CurrentByteIndex
        opened[-1].content.append(element)
        opened.append(element)

    def end(_: str) -> None:
        opened.pop().end = parser.CurrentByteIndex

    def refuse(*_: Any) -> None:
        raise _NotXmlError

    parser = expat.ParserCreate("UTF-8")
    parser.ordered_attributes = True
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = lambda data: opened[-1].content.append(data)
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(text.encode(), True)
    except (expat.ExpatError, _NotXmlError):
        return None
    return document


def is_namespace(attribute: str) -> bool:
    """Returns True for an attribute that declares a namespace."""
    return attribute.startswith("xmlns:") or local_name(attribute) == "xmlns"


def local_name(name: str) -> str:
    """Returns the name of an element or attribute without its prefix."""
    return name.rpartition(":")[2]


def _select(
    element: XmlElement, steps: Sequence[XmlStep], before: tuple[XmlStep, ...] = ()
) -> Iterator[tuple[XmlElement, tuple[XmlStep, ...]]]:
    if not steps:
        yield element, before
        return
    step, rest = steps[0], steps[1:]
    children = (part for part in element.content if isinstance(part, XmlElement) and part.name == step.name)
    named = [*enumerate(children, 1)]
    if step.position is not None:
        named = named[step.position if step.position < 0 else step.position - 1 :][:1]
    for number, child in named:
        # The document has one root.
        taken = step if not before or step.position is not None else replace(step, position=number)
        yield from _select(child, rest, (*before, taken))
