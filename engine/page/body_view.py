"""Bodies as people read them: JSON and XML with a line for each part, text, or hexadecimal; bounded in size."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from routes.predicate.xml_document import read_xml

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["BodyForm", "ShownBody", "preview", "shown_body"]

_MOST_TEXT = 128 * 1024
"""Bytes of a body that are shown as text."""
_MOST_HEX = 16 * 1024
_LINE = 16
_DEEPEST = 100
_DEEPEST_INDENT = 20
"""Levels that are indented, so that a body of brackets alone does not make a page of blanks."""
_JSON = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_XML = re.compile(r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<[^>]*>|[^<]+", re.DOTALL)
_PREVIEW = 160


class BodyForm(StrEnum):
    """Forms in which a body is shown."""

    JSON = "json"
    XML = "xml"
    TEXT = "text"
    HEX = "hex"

    @property
    def suffix(self) -> str:
        """End of the name of a file with such a body."""
        return {"text": "txt", "hex": "bin"}.get(self, str(self))


@dataclass(frozen=True, slots=True)
class ShownBody:
    """A body in one of the forms."""

    form: BodyForm
    forms: tuple[BodyForm, ...]
    """The forms in which the body can be shown."""
    text: str
    size: int
    """Bytes of the whole body."""
    shown: int
    """Bytes of it that are in `text`."""


def shown_body(body: bytes, wanted: str = "") -> ShownBody:
    """Makes a body readable, in the wanted form if that is possible, else in the most telling one."""
    text = _decoded(body[:_MOST_TEXT], is_cut=len(body) > _MOST_TEXT)
    whole = len(body) <= _MOST_TEXT and text is not None
    pretty: dict[BodyForm, str] = {}
    if whole and text and (made := _json(text)) is not None:
        pretty[BodyForm.JSON] = made
    elif whole and text and text.lstrip().startswith("<") and read_xml(body, _DEEPEST) is not None:
        pretty[BodyForm.XML] = "\n".join(_xml(text))
    if text is not None:
        pretty[BodyForm.TEXT] = text
    forms = (*pretty, BodyForm.HEX)
    form = BodyForm(wanted) if wanted in forms else forms[0]
    if form is BodyForm.HEX:
        return ShownBody(form, forms, "\n".join(_hex(body[:_MOST_HEX])), len(body), min(len(body), _MOST_HEX))
    return ShownBody(form, forms, pretty[form], len(body), min(len(body), _MOST_TEXT))


def preview(body: bytes) -> str:
    """The beginning of a body in one line, in hexadecimal if it is not text."""
    text = _decoded(body[: 4 * _PREVIEW], is_cut=len(body) > 4 * _PREVIEW)
    if text is None:
        return body[: _PREVIEW // 4].hex(" ") + (" …" if len(body) > _PREVIEW // 4 else "")
    line = " ".join(text.split())
    return line[:_PREVIEW] + (" …" if len(line) > _PREVIEW or len(body) > 4 * _PREVIEW else "")


def _decoded(body: bytes, *, is_cut: bool) -> str | None:
    """The text; None for bytes that are not UTF-8, a character that the cut has split excepted."""
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        return body[: error.start].decode() if is_cut and error.start > len(body) - 4 else None


def _json(text: str) -> str | None:
    """JSON with a line for each member, numbers and names as they are; None if it is not an object or array."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        # Numbers are not read: those of thousands of digits would take long.
        json.loads(text, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return None
    parts: list[str] = []
    level, last = 0, ""
    for piece in _JSON.findall(text):
        if piece in "}]":
            level -= 1
            parts += [] if last in ("{", "[") else [_break(level)]
        elif last in ("{", "[", ","):
            parts.append(_break(level))
        parts.append(": " if piece == ":" else piece)
        level += piece in "{["
        last = piece
    return "".join(parts)


def _xml(text: str) -> Iterator[str]:
    """The lines of a well-formed document: one for each tag, or for an element that has text alone."""
    level, opened = 0, ""
    for piece in _XML.findall(text):
        if not piece.strip():
            continue
        is_tag = piece.startswith("<") and not piece.startswith(("<!", "<?"))
        if is_tag and piece.startswith("</"):
            level -= 1
            if opened:
                yield _indent(level) + opened + piece
            else:
                yield _indent(level) + piece
            opened = ""
        elif opened and not piece.startswith("<") and ">" not in opened[:-1] and len(opened) + len(piece) < _PREVIEW:
            opened += piece.strip()
        else:
            if opened:
                yield _indent(level - 1) + opened
            opened = ""
            if is_tag and not piece.endswith("/>"):
                opened = piece
                level += 1
            else:
                yield _indent(level) + piece.strip()
    if opened:
        yield opened


def _hex(body: bytes) -> Iterator[str]:
    for start in range(0, len(body), _LINE):
        part = body[start : start + _LINE]
        signs = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in part)
        yield f"{start:08x}  {part[:8].hex(' '):<23}  {part[8:].hex(' '):<23}  {signs}"


def _break(level: int) -> str:
    return "\n" + _indent(level)


def _indent(level: int) -> str:
    return "  " * min(max(level, 0), _DEEPEST_INDENT)
