"""Changes to encoded AMQP messages without decoding them: a body is cut, or a duplicate id for Artemis added.

Every section but the body and the footer is a list or a map with its size in front, so that it can be skipped (OASIS
AMQP 1.0, part 3.2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from engine.connectors.amqp.codec.encoding import encode, encode_pairs

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["shortened", "with_duplicate_id"]

_APPLICATION_PROPERTIES, _DATA, _VALUE, _FOOTER = 0x74, 0x75, 0x77, 0x78
_ULONG = b"\x00\x53"
_HEAD_BYTES = 3
_BODY_HEAD_BYTES = 8
_EMPTY_LIST = 0x45
_WIDTHS = {0xC0: 1, 0xC1: 1, 0xD0: 4, 0xD1: 4}
_BODY_WIDTHS = {0xA0: 1, 0xA1: 1, 0xB0: 4, 0xB1: 4}
_BINARY, _STRING = 0xB0, 0xB1
_DUPLICATE_ID = "_AMQ_DUPL_ID"
"""Application property that Artemis reads. It is added to the encoded message, so no name translator changes it."""


def shortened(beginning: bytes, body_bytes: int) -> tuple[bytes, int]:
    """Cuts the body of a message, of which `beginning` holds at least the sections before the body.

    Returns a complete message with a body of at most `body_bytes`, and the offset at which the content of the original
    body began. A text stays a text; a body that cannot be cut, such as a map, becomes data with the first bytes of its
    encoding. Bytes that are not a message are returned unchanged, with offset 0.
    """
    offset = 0
    for section in _sections(beginning):
        offset = section.end
    is_whole = len(beginning) > offset + _BODY_HEAD_BYTES and beginning[offset : offset + 2] == _ULONG
    if not is_whole or not _DATA <= beginning[offset + 2] <= _VALUE:
        return beginning, 0
    kind, constructor = beginning[offset + 2], beginning[offset + _HEAD_BYTES]
    width = _BODY_WIDTHS.get(constructor, 0)
    start = offset + _HEAD_BYTES + 1 + width if width else offset
    content = beginning[start : start + body_bytes]
    head = bytes((0, 0x53, _DATA, _BINARY))
    if kind == _VALUE and width and constructor & 0x0F:
        content = content.decode("utf-8", "ignore").encode()
        head = bytes((0, 0x53, _VALUE, _STRING))
    return beginning[:offset] + head + len(content).to_bytes(4) + content, start


def with_duplicate_id(encoded: bytes, message_id: str) -> bytes:
    """Adds an id by which Artemis recognizes a message that is sent again.

    A message that has such an id already keeps it, as its sender's choice. Bytes that are not a message are returned
    unchanged.
    """
    offset, pairs, rest = 0, [], 0
    for section in _sections(encoded):
        rest = section.end
        if section.kind == _APPLICATION_PROPERTIES:
            content = encoded[section.content : section.end]
            if _DUPLICATE_ID.encode() in content:
                return encoded
            pairs = [content, *[b""] * (section.items - 1)] if section.items else []
        else:
            offset = section.end
    if encoded[rest : rest + 2] != _ULONG:
        return encoded
    head = bytes((0, 0x53, _APPLICATION_PROPERTIES))
    return encoded[:offset] + head + encode_pairs([*pairs, encode(_DUPLICATE_ID), encode(message_id)]) + encoded[rest:]


class _Section(NamedTuple):
    kind: int
    content: int
    """Offset of the first item."""
    items: int
    """Number of items, as the encoding counts them: two for each pair of a map."""
    end: int
    """Offset behind the section."""


def _sections(data: bytes) -> Iterator[_Section]:
    """Yields the sections before the body, up to the first incomplete one."""
    offset = 0
    while len(data) >= offset + _HEAD_BYTES + 1 and data[offset : offset + 2] == _ULONG and data[offset + 2] < _DATA:
        kind, constructor = data[offset + 2], data[offset + _HEAD_BYTES]
        start = offset + _HEAD_BYTES + 1
        if constructor == _EMPTY_LIST:
            yield _Section(kind, start, 0, start)
            offset = start
            continue
        width = _WIDTHS.get(constructor)
        if width is None:
            return
        content = start + 2 * width
        end = start + width + int.from_bytes(data[start : start + width])
        if not content <= end <= len(data):
            return
        yield _Section(kind, content, int.from_bytes(data[start + width : content]), end)
        offset = end
