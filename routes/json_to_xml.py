"""XML documents of JSON texts: `jmsbridge.predicate.JsonToXml` (`jvm/spark`) makes the same of the same texts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from routes.predicate.bodies import BOUNDS, SURROGATE, Bounds, read_json
from routes.unconvertible import LARGEST, TOO_LARGE, UnconvertibleBodyError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["json_to_xml"]

_TEXT = "#text"
_START = (
    "A-Z_a-z\xc0-\xd6\xd8-\xf6\xf8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f\u2c00-\u2fef"
    "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_NAME = re.compile(f"[{_START}][{_START}.0-9\xb7\u0300-\u036f\u203f-\u2040-]*")
"""Names without a prefix (XML 1.0, fifth edition, section 2.3)."""
_FORBIDDEN = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_IN_TEXT = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
_IN_ATTRIBUTE = _IN_TEXT | str.maketrans({'"': "&quot;", "\t": "&#9;", "\n": "&#10;"})
_LONGEST_QUOTE = 40


def json_to_xml(content: bytes, bounds: Bounds = BOUNDS) -> bytes:
    """Returns the document of which `xml_to_json` makes a text; UnconvertibleBodyError says why there is none.

    Numbers are written as they are spelled, `null` as an empty text. Of several members with one name the last counts.
    """
    read = read_json(content, bounds) if len(content) <= bounds.size else None
    if read is None:
        msg = f"it is not JSON of at most {bounds.size:,} bytes, with values nested at most {bounds.depth} deep"
        raise UnconvertibleBodyError(msg)
    [document] = read
    if not isinstance(document, dict) or len(document) != 1:
        raise UnconvertibleBodyError("it is not an object with one member, the root element")
    [(name, value)] = document.items()
    if isinstance(value, list):
        raise UnconvertibleBodyError(f"the root element {_quoted(name)} is an array")
    written = _Writer()
    written.elements(name, value)
    return b"".join(written.parts)


class _Writer:
    """Writer of elements, up to the largest size of a body."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self._left = LARGEST

    def elements(self, name: str, value: Any) -> None:
        """Writes the element of a value, or one for each value of an array."""
        _check_name(name, name, "an element")
        for each in value if isinstance(value, list) else (value,):
            if isinstance(each, list):
                raise UnconvertibleBodyError(f"the array {_quoted(name)} has an array in it")
            self._element(name, each if isinstance(each, dict) else {_TEXT: each})

    def _element(self, name: str, members: Mapping[str, Any]) -> None:
        self._write(f"<{name}")
        for each, value in members.items():
            if each.startswith("@"):
                _check_name(each, each[1:], "an attribute")
                self._write(f' {each[1:]}="{_scalar(each, value).translate(_IN_ATTRIBUTE)}"')
        self._write(">")
        for each, value in members.items():
            if not each.startswith("@") and each != _TEXT:
                self.elements(each, value)
        if _TEXT in members:
            self._write(_scalar(_TEXT, members[_TEXT]).translate(_IN_TEXT))
        self._write(f"</{name}>")

    def _write(self, text: str) -> None:
        part = text.encode()
        self._left -= len(part)
        if self._left < 0:
            raise UnconvertibleBodyError(TOO_LARGE)
        self.parts.append(part)


def _check_name(member: str, name: str, what: str) -> None:
    # As an attribute it would declare a namespace.
    if not _NAME.fullmatch(name) or member == "@xmlns":
        raise UnconvertibleBodyError(f"{_quoted(member)} cannot be the name of {what}")


def _scalar(name: str, value: Any) -> str:
    """Returns the text of a value that has no members."""
    if isinstance(value, list | dict):
        raise UnconvertibleBodyError(f"{_quoted(name)} is an object or array and not a text")
    text = str(value).lower() if isinstance(value, bool) else "" if value is None else SURROGATE.sub("\ufffd", value)
    if match := _FORBIDDEN.search(text):
        raise UnconvertibleBodyError(f"U+{ord(match[0]):04X} cannot stand in XML")
    return text


def _quoted(name: str) -> str:
    """Returns the beginning of a name as ASCII, whatever it holds."""
    start = (each if " " <= each <= "~" else f"\\u{ord(each):04x}" for each in name[:_LONGEST_QUOTE])
    return f"'{''.join(start)}{'…' if len(name) > _LONGEST_QUOTE else ''}'"
