"""Conversions of bodies that leave: steps from one body to the next, applied in their order.

`jmsbridge.predicate.BodySteps` (`jvm/spark`) converts the same bodies alike; the bytes of `gzip` are those that zlib
makes on each side.
"""

from __future__ import annotations

import codecs
import json
import zlib
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from routes.charsets import NO_CHARACTER
from routes.json_to_xml import json_to_xml
from routes.predicate.bodies import BOUNDS, Bounds
from routes.unconvertible import LARGEST, TOO_LARGE, UnconvertibleBodyError
from routes.xml_to_json import xml_to_json

if TYPE_CHECKING:
    from routes.charsets import Charset

__all__ = ["BodyStep", "BodySteps", "StepKind", "UnconvertibleBodyError", "not_converted"]

_TRUNCATED = "it is truncated"
_DAMAGED = "it is damaged"

_MAGIC = b"\x1f\x8b\x08"
_HEADER, _TRAILER = 10, 8
_CHECKED, _EXTRA, _NAME, _COMMENT, _RESERVED = 2, 4, 8, 16, 0xE0
"""Flags of a gzip header (RFC 1952, section 2.3.1)."""
_LEAST_CHUNK, _MOST_CHUNK = 512, 64 * 1024
_MARK_BIG, _MARK_LITTLE = codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE


class StepKind(StrEnum):
    """Kinds of steps, in the only order in which they can follow each other."""

    GUNZIP = "gunzip"
    FROM = "from"
    XML_TO_JSON = "xml-to-json"
    JSON_TO_XML = "json-to-xml"
    TO = "to"
    GZIP = "gzip"

    @property
    def takes_charset(self) -> bool:
        """True if the step names a character set."""
        return self in (StepKind.FROM, StepKind.TO)


@dataclass(frozen=True, slots=True)
class BodyStep:
    """A step, with its character set if it has one."""

    kind: StepKind
    charset: Charset | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.charset.name}" if self.charset else str(self.kind)

    def apply(self, body: bytes, bounds: Bounds) -> bytes:
        """Returns the next body; raises UnconvertibleBodyError if there cannot be one."""
        match self.kind:
            case StepKind.GUNZIP:
                return _gunzip(body)
            case StepKind.XML_TO_JSON:
                return _xml_to_json(body, bounds)
            case StepKind.JSON_TO_XML:
                return json_to_xml(body, bounds)
            case StepKind.GZIP:
                return _gzip(body)
        assert self.charset is not None
        if self.kind is StepKind.FROM:
            return _decode(body, self.charset).encode()
        return _encode(_unicode(body, "UTF-8"), self.charset)


@dataclass(frozen=True, slots=True)
class BodySteps:
    """All steps of a route; at least one."""

    steps: tuple[BodyStep, ...]

    def __str__(self) -> str:
        return ", ".join(map(str, self.steps))

    @property
    def kind(self) -> str:
        """Kind of the converted body (`engine.message.BodyType`)."""
        return "text" if self.steps[-1].kind in (StepKind.FROM, StepKind.XML_TO_JSON, StepKind.JSON_TO_XML) else "bytes"

    @property
    def reads_xml(self) -> bool:
        """True if a step makes JSON of XML, all of whose values are texts."""
        return any(step.kind is StepKind.XML_TO_JSON for step in self.steps)

    @property
    def takes_json(self) -> bool:
        """True if the steps begin with text, which the JSON of a map, stream or object also is."""
        return self.steps[0].kind in (StepKind.JSON_TO_XML, StepKind.TO, StepKind.GZIP)

    @property
    def json(self) -> str:
        """The steps as `jmsbridge.predicate.BodySteps` reads them."""
        return json.dumps(
            [
                {"step": step.kind, "name": str(step), "charset": step.charset.name, "table": step.charset.table}
                if step.charset
                else {"step": step.kind, "name": str(step)}
                for step in self.steps
            ]
        )

    def body(self, body: bytes | None, bounds: Bounds = BOUNDS) -> bytes:
        """Returns the converted body; raises UnconvertibleBodyError with the reason if there cannot be one.

        JSON and XML are read within bounds.
        """
        for step in self.steps:
            try:
                if body is None:
                    raise UnconvertibleBodyError("the message has no body")
                body = _bounded(step.apply(_bounded(body), bounds))
            except UnconvertibleBodyError as error:
                raise UnconvertibleBodyError(f"'{step}' could not be applied: {error}") from None
        assert body is not None
        return body

    def fault(self, body: bytes | None, bounds: Bounds = BOUNDS) -> str | None:
        """Returns the reason why the body cannot be converted; None if it can."""
        try:
            self.body(body, bounds)
        except UnconvertibleBodyError as error:
            return str(error)
        return None


def not_converted(kind: str) -> str:
    """Returns the reason why no body of a kind is converted."""
    return f"the body is of type {kind}, to which the steps of the route cannot be applied"


def _bounded(body: bytes) -> bytes:
    if len(body) > LARGEST:
        raise UnconvertibleBodyError(TOO_LARGE)
    return body


def _xml_to_json(body: bytes, bounds: Bounds) -> bytes:
    text = xml_to_json(body, bounds)
    if text is None:
        limit = f"at most {bounds.size:,} bytes, with elements nested at most {bounds.depth} deep"
        raise UnconvertibleBodyError(f"it is not XML without a DTD of {limit}")
    return text


def _gzip(body: bytes) -> bytes:
    """Compresses a body, without a time or a name; 255 stands for an unknown system."""
    deflater = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return b"".join((_MAGIC, bytes(6), b"\xff", deflater.compress(body), deflater.flush(), _trailer(body)))


def _trailer(content: bytes) -> bytes:
    return zlib.crc32(content).to_bytes(4, "little") + len(content).to_bytes(4, "little")


def _gunzip(body: bytes) -> bytes:
    """Decompresses all members of a body; it ends with the last one."""
    offset, parts, left = 0, list[bytes](), LARGEST
    while offset < len(body) or not parts:
        content, offset = _inflated(body, _after_header(body, offset), left)
        if len(body) - offset < _TRAILER:
            raise UnconvertibleBodyError(_TRUNCATED)
        if body[offset : offset + _TRAILER] != _trailer(content):
            raise UnconvertibleBodyError(_DAMAGED)
        offset += _TRAILER
        left -= len(content)
        parts.append(content)
    return b"".join(parts)


def _after_header(body: bytes, start: int) -> int:
    """Returns the place behind the header of the member that begins at a place."""
    magic = body[start : start + len(_MAGIC)]
    if magic != _MAGIC[: len(magic)]:
        raise UnconvertibleBodyError(f"no gzip begins at {start}")
    offset = start + _HEADER
    if offset > len(body):
        raise UnconvertibleBodyError(_TRUNCATED)
    flags = body[start + len(_MAGIC)]
    if flags & _RESERVED:
        raise UnconvertibleBodyError(f"no gzip begins at {start}")
    if flags & _EXTRA:
        offset += 2 + int.from_bytes(body[offset : offset + 2], "little")
    for _ in range(bool(flags & _NAME) + bool(flags & _COMMENT)):
        offset = body.find(b"\0", offset) + 1
        if not offset:
            raise UnconvertibleBodyError(_TRUNCATED)
    if flags & _CHECKED:
        offset += 2
    if offset > len(body):
        raise UnconvertibleBodyError(_TRUNCATED)
    if flags & _CHECKED and zlib.crc32(body[start : offset - 2]) & 0xFFFF != int.from_bytes(
        body[offset - 2 : offset], "little"
    ):
        raise UnconvertibleBodyError(_DAMAGED)
    return offset


def _inflated(body: bytes, offset: int, limit: int) -> tuple[bytes, int]:
    """Returns the content that begins at a place, of a bounded size, and its end.

    The body goes through in chunks, since zlib copies what is left of a chunk, and a body may have many members.
    """
    inflater, view, parts, size = zlib.decompressobj(-zlib.MAX_WBITS), memoryview(body), list[bytes](), _LEAST_CHUNK
    while not inflater.eof:
        chunk = view[offset : offset + size]
        if not chunk:
            raise UnconvertibleBodyError(_TRUNCATED)
        try:
            parts.append(inflater.decompress(chunk, limit + 1))
        except zlib.error:
            raise UnconvertibleBodyError(_DAMAGED) from None
        limit -= len(parts[-1])
        if limit < 0:
            raise UnconvertibleBodyError(TOO_LARGE)
        offset += len(chunk) - len(inflater.unused_data)
        size = min(2 * size, _MOST_CHUNK)
    return b"".join(parts), offset


def _decode(body: bytes, charset: Charset) -> str:
    if charset.table is None:
        return _unicode(body, charset.name)
    try:
        return codecs.charmap_decode(body, "strict", charset.table)[0]
    except UnicodeDecodeError as error:
        raise _no_character(body, error.start, charset.name) from None


def _unicode(body: bytes, name: str) -> str:
    """Returns a text in a form of Unicode; a mark at the beginning of UTF-16 says the order of its bytes."""
    skipped = 2 if name == "UTF-16" and body[:2] in (_MARK_BIG, _MARK_LITTLE) else 0
    codec = {"UTF-16": "UTF-16LE" if skipped and body[:2] == _MARK_LITTLE else "UTF-16BE"}.get(name, name)
    try:
        return body[skipped:].decode(codec)
    except UnicodeDecodeError as error:
        raise _no_character(body, skipped + error.start, name) from None


def _no_character(body: bytes, offset: int, name: str) -> UnconvertibleBodyError:
    return UnconvertibleBodyError(f"byte 0x{body[offset]:02X} at {offset} begins no character of {name}")


def _encode(text: str, charset: Charset) -> bytes:
    if charset.table is None:
        return _MARK_BIG + text.encode("UTF-16BE") if charset.name == "UTF-16" else text.encode(charset.name)
    places = {ord(each): byte for byte, each in enumerate(charset.table) if each != NO_CHARACTER}
    try:
        return codecs.charmap_encode(text, "strict", places)[0]
    except UnicodeEncodeError as error:
        offset = error.start
        raise UnconvertibleBodyError(f"U+{ord(text[offset]):04X} at {offset} is not in {charset.name}") from None
