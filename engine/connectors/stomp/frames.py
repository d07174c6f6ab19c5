"""STOMP 1.2 frames out of a stream of bytes: any cut of the stream gives the same frames, in memory that is bounded.

Specification: https://stomp.github.io/stomp-specification-1.2.html. Frames to the broker are made by `stomp.py`; what
the headers of a message mean is in `message`. This parser is used in place of stomp.py's, which loses a frame
that two heart-beats precede, and copies a large body once for each piece in which it comes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Frame", "FrameError", "FrameParser", "escape"]

_COMMANDS = frozenset({"CONNECTED", "MESSAGE", "RECEIPT", "ERROR"})
_EOLS = re.compile(rb"[\n\r]*")
"""Heart-beats, and what may follow a frame."""
_HEAD_END = re.compile(rb"\n\r?\n")
_MIN_HEAD_BYTES = 1024 * 1024
_UNESCAPED = {"\\n": "\n", "\\r": "\r", "\\c": ":", "\\\\": "\\"}
_ESCAPED = str.maketrans({char: escape for escape, char in _UNESCAPED.items()})


class FrameError(Exception):
    """The stream is not STOMP 1.2; nothing that follows in it can be trusted."""


class Frame(NamedTuple):
    """One frame from the broker."""

    command: str
    headers: Mapping[str, str]
    """Unescaped, in the order of the frame; of repeated ones the first. What is no UTF-8 became U+FFFD."""
    body: bytes
    size: int
    """Bytes of the body as sent; more than `body` has if it was too large to keep."""


class FrameParser:
    """Takes bytes as they come and gives frames as they are complete. Heart-beats are passed over."""

    def __init__(self, max_body_bytes: int, kept_bytes: int) -> None:
        """Of a body over `max_body_bytes` only the first `kept_bytes` are kept."""
        self._max_body = max_body_bytes
        self._kept = min(kept_bytes, max_body_bytes)
        self._max_head = max(max_body_bytes, _MIN_HEAD_BYTES)
        self._rest = b""
        self._partial: _Partial | None = None

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that `data` completes; exhaust it before the next call.

        Raises:
            FrameError: what came is not STOMP 1.2.
        """
        if self._rest:
            data, self._rest = self._rest + data, b""
        position = 0
        while True:
            if self._partial is None and (head := self._head(data, position)) is not None:
                command, headers, start = head
                length = _content_length(headers)
                end = data.find(0, start) if length is None else start + length
                if start <= end < len(data) and end - start <= self._max_body:
                    _check_end(data, end, length)
                    yield Frame(command, headers, data[start:end], end - start)
                    position = end + 1
                    continue
                self._partial, position = _Partial(command, headers, length, self._max_body, self._kept), start
            if self._partial is None:
                return
            position = self._partial.take(data, position)
            if not self._partial.complete:
                return
            frame, self._partial = self._partial.frame(), None
            yield frame

    def _head(self, data: bytes, position: int) -> tuple[str, dict[str, str], int] | None:
        """Command and headers of the frame that begins there, and where its body does; None if not all have come."""
        position = _EOLS.match(data, position).end()  # type: ignore[union-attr] # it matches nothing as well
        if found := _HEAD_END.search(data, position):
            end, body = found.span()
            return *_parse_head(data[position:end]), body
        self._rest = data[position:]
        if len(self._rest) > self._max_head:
            msg = f"a frame with more than {self._max_head} bytes of headers"
            raise FrameError(msg)
        return None


class _Partial:
    """A frame whose headers are known, and whose body comes in pieces or is too large."""

    __slots__ = ("_command", "_headers", "_held", "_kept", "_length", "_most", "_pieces", "_size", "complete")

    def __init__(self, command: str, headers: Mapping[str, str], length: int | None, most: int, kept: int) -> None:
        self.complete = False
        self._command = command
        self._headers = headers
        self._length = length
        self._most = most
        self._kept = kept
        self._pieces: list[bytes] = []
        self._held = 0
        self._size = 0

    def take(self, data: bytes, start: int) -> int:
        """Takes what belongs to this frame from `start` on; where it stopped taking."""
        end = data.find(0, start) if self._length is None else start + self._length - self._size
        if not 0 <= end < len(data):
            self._keep(data, start, len(data))
            return len(data)
        self._keep(data, start, end)
        _check_end(data, end, self._length)
        self.complete = True
        return end + 1

    def frame(self) -> Frame:
        return Frame(self._command, self._headers, b"".join(self._pieces), self._size)

    def _keep(self, data: bytes, start: int, end: int) -> None:
        self._size += end - start
        # Too large from the first piece on where the length was told, else from the piece that makes it so.
        room = end - start if max(self._size, self._length or 0) <= self._most else self._kept - self._held
        if room < 0:
            self._pieces = [b"".join(self._pieces)[: self._kept]]
            self._held = self._kept
        elif start < end and room:
            piece = data[start : min(end, start + room)]
            self._pieces.append(piece)
            self._held += len(piece)


def escape(value: str) -> str:
    """A header's name or value as it stands in a frame."""
    return value.translate(_ESCAPED)


def _parse_head(head: bytes) -> tuple[str, dict[str, str]]:
    text = head.decode("utf-8", "replace")
    if "\r" in text:
        text = "\n".join([line.removesuffix("\r") for line in text.split("\n")])
    command, *lines = text.split("\n")
    if command not in _COMMANDS:
        msg = f"a frame begins with {command[:40]!r}, which is no STOMP command"
        raise FrameError(msg)
    # CONNECTED is the one frame whose headers are not escaped.
    escaped = "\\" in text and command != "CONNECTED"
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            msg = f"a header line without a colon: {line[:40]!r}"
            raise FrameError(msg)
        if escaped and "\\" in line:
            name, value = _unescape(name), _unescape(value)
        headers.setdefault(name, value)
    return command, headers


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    plain: list[str] = []
    position = 0
    while (found := text.find("\\", position)) >= 0:
        pair = text[found : found + 2]
        # An unknown escape should end the connection, by the specification. It stays as it is instead: the same
        # message would come again after every reconnection.
        plain += (text[position:found], _UNESCAPED.get(pair, pair))
        position = found + 2
    return "".join((*plain, text[position:]))


def _check_end(data: bytes, end: int, length: int | None) -> None:
    if data[end]:
        msg = f"a body that does not end after its {length} bytes"
        raise FrameError(msg)


def _content_length(headers: Mapping[str, str]) -> int | None:
    text = headers.get("content-length")
    if text is None:
        return None
    digits = text.strip(" \t")
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > 19:
        msg = f"a content-length that is no number: {text[:40]!r}"
        raise FrameError(msg)
    return int(digits)
