"""Masks of values in XML bodies, which leave all other text as it is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from routes.predicate.bodies import BOUNDS, BYTE_ORDER_MARK, Bounds
from routes.predicate.xml_document import elements, is_namespace, local_name, parsed, xml_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from routes.predicate.nodes import XmlPath
    from routes.predicate.xml_document import XmlElement

__all__ = ["XmlMask"]

_STARS = b"***"
_TAG = re.compile(rb"""<[^"'>]*(?:"[^"]*"[^"'>]*|'[^']*'[^"'>]*)*>""")
_ATTRIBUTE = re.compile(rb"""([^\s=/<>"']+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")


@dataclass(frozen=True, slots=True)
class XmlMask:
    """Mask of the values under paths: `***` in the place of an attribute, or of an element's content and attributes.

    A path that leads nowhere changes nothing. A path to the own text of an element or to a number masks the element.
    """

    paths: tuple[XmlPath, ...]

    def body(self, body: bytes, bounds: Bounds = BOUNDS) -> bytes | None:
        """Returns the body with its values masked; None if it cannot be read as XML, or exceeds bounds.

        A body in UTF-8 keeps all other bytes; of another encoding it makes UTF-8.
        """
        text = xml_text(body)
        document = self._document(body, text, bounds)
        if document is None:
            return None
        content, parts, copied = text.encode(), list[bytes](), 0
        for start, end in sorted(self._spans(content, document)):
            # A masked element may have masked values in it.
            if start >= copied:
                parts += [content[copied:start], _STARS]
                copied = end
        mark = BYTE_ORDER_MARK if body.startswith(BYTE_ORDER_MARK) else b""
        return mark + b"".join((*parts, content[copied:]))

    def hidden(self, body: bytes, bounds: Bounds = BOUNDS) -> Iterator[str]:
        """Yields the values that the mask takes out of a body; none of a body that it cannot be applied to."""
        document = self._document(body, xml_text(body), bounds)
        if document is None:
            return
        for path in self.paths:
            for element in elements(document, path):
                if path.attribute is None:
                    yield from _texts(element)
                elif (value := element.attributes.get(path.attribute)) is not None:
                    yield value

    def _document(self, body: bytes, text: str, bounds: Bounds) -> XmlElement | None:
        return parsed(text, bounds.depth) if len(body) <= bounds.size else None

    def _spans(self, content: bytes, document: XmlElement) -> Iterator[tuple[int, int]]:
        """Yields the places of the masked values, which may overlap."""
        for path in self.paths:
            for element in elements(document, path):
                tag = _TAG.match(content, element.start)
                assert tag is not None
                for each in _ATTRIBUTE.finditer(content, element.start, tag.end()):
                    name = each[1].decode()
                    is_masked = path.attribute in (None, local_name(name))
                    if is_masked and not is_namespace(name):
                        yield each.span(2 if each[2] is not None else 3)
                if path.attribute is None and not tag[0].endswith(b"/>"):
                    yield tag.end(), element.end


def _texts(element: XmlElement) -> Iterator[str]:
    """Yields the texts in an element: all of them together, each by itself, and those of attributes."""
    yield element.text(is_own=False) or ""
    yield from element.attributes.values()
    for part in element.content:
        if isinstance(part, str):
            yield part
        else:
            yield from _texts(part)
