"""Incremental parser for STOMP 1.2 frames in bounded memory; the result does not depend on how the bytes are split.

Specification: https://stomp.github.io/stomp-specification-1.2.html. Outgoing frames are written by `stomp.py` and
`sending`; `message` converts the headers of a MESSAGE frame. This parser replaces stomp.py's own, which loses a frame
after two heart-beats, and copies a large body once for each piece received.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from engine.connectors.numbers import whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["StompFrame", "StompFrameError", "StompFrameParser", "escape"]

_COMMANDS = frozenset({"CONNECTED", "MESSAGE", "RECEIPT", "ERROR"})
_EOLS = re.compile(rb"[\n\r]*")
"""Heart-beats, and line ends that may follow a frame."""
_HEAD_END = re.compile(rb"\n\r?\n")
_MIN_HEAD_BYTES = 1024 * 1024
_UNESCAPED = {"\\n": "\n", "\\r": "\r", "\\c": ":", "\\\\": "\\"}
_ESCAPED = str.maketrans({char: escape for escape, char in _UNESCAPED.items()})


class StompFrameError(Exception):
    """Error in the received bytes: they are not STOMP 1.2, and nothing after them can be parsed."""


class StompFrame(NamedTuple):
    """Frame from the broker."""

    command: str
    headers: Mapping[str, str]
    """Unescaped headers in the order of the frame; of a repeated header the first. Bytes that are not UTF-8 are
    replaced by U+FFFD."""
    body: bytes
    size: int
    """Size of the body as sent, in bytes; greater than `len(body)` if the body was too large to keep."""


class StompFrameParser:
    """Parser of one connection: takes received bytes and yields complete frames. Heart-beats are skipped."""

    def __init__(self, max_body_bytes: int, kept_bytes: int) -> None:
        """Creates a parser that keeps only the first `kept_bytes` of a body larger than `max_body_bytes`."""
        self._max_body = max_body_bytes
        self._kept = min(kept_bytes, max_body_bytes)
        self._max_head = max(max_body_bytes, _MIN_HEAD_BYTES)
        self._rest = b""
        self._partial: _Partial | None = None

    def feed(self, data: bytes) -> Iterator[StompFrame]:
        """Yields the frames that `data` completes; the caller must exhaust the iterator before the next call.

        Raises:
            FrameError: the bytes are not STOMP 1.2.
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
                    yield StompFrame(command, headers, data[start:end], end - start)
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
        """Returns command, headers and start of the body of the frame at `position`; None if its head is incomplete.

        An incomplete head is kept for the next `feed`.
        """
        position = _EOLS.match(data, position).end()  # type: ignore[union-attr] # the pattern also matches the empty string
        if found := _HEAD_END.search(data, position):
            end, body = found.span()
            return *_parse_head(data[position:end]), body
        self._rest = data[position:]
        if len(self._rest) > self._max_head:
            msg = f"a frame with more than {self._max_head} bytes of headers"
            raise StompFrameError(msg)
        return None


class _Partial:
    """Frame whose headers are parsed, and whose body arrives in pieces or is too large."""

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
        """Consumes the bytes of this frame from `start` on; returns the index behind the last byte consumed."""
        end = data.find(0, start) if self._length is None else start + self._length - self._size
        if not 0 <= end < len(data):
            self._keep(data, start, len(data))
            return len(data)
        self._keep(data, start, end)
        _check_end(data, end, self._length)
        self.complete = True
        return end + 1

    def frame(self) -> StompFrame:
        return StompFrame(self._command, self._headers, b"".join(self._pieces), self._size)

    def _keep(self, data: bytes, start: int, end: int) -> None:
        self._size += end - start
        # With a content-length a body is known to be too large from the first piece on; without one, only from the
        # piece that exceeds the limit.
        room = end - start if max(self._size, self._length or 0) <= self._most else self._kept - self._held
        if room < 0:
            self._pieces = [b"".join(self._pieces)[: self._kept]]
            self._held = self._kept
        elif start < end and room:
            piece = data[start : min(end, start + room)]
            self._pieces.append(piece)
            self._held += len(piece)


def escape(value: str) -> str:
    """Escapes a header's name or value for a frame."""
    return value.translate(_ESCAPED)


def _parse_head(head: bytes) -> tuple[str, dict[str, str]]:
    text = head.decode("utf-8", "replace")
    if "\r" in text:
        text = "\n".join([line.removesuffix("\r") for line in text.split("\n")])
    command, *lines = text.split("\n")
    if command not in _COMMANDS:
        msg = f"a frame begins with {command[:40]!r}, which is no STOMP command"
        raise StompFrameError(msg)
    # Of the frames that a broker sends, only CONNECTED has headers that are not escaped.
    escaped = "\\" in text and command != "CONNECTED"
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            msg = f"a header line without a colon: {line[:40]!r}"
            raise StompFrameError(msg)
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
        # By the specification an unknown escape should end the connection. It is kept as it is instead: the broker
        # would redeliver the same message after every reconnection.
        plain += (text[position:found], _UNESCAPED.get(pair, pair))
        position = found + 2
    return "".join((*plain, text[position:]))


def _check_end(data: bytes, end: int, length: int | None) -> None:
    if data[end]:
        msg = f"a body that does not end after its {length} bytes"
        raise StompFrameError(msg)


def _content_length(headers: Mapping[str, str]) -> int | None:
    text = headers.get("content-length")
    if text is None:
        return None
    length = whole(text.strip(" \t"))
    if length is None:
        msg = f"a content-length that is no number: {text[:40]!r}"
        raise StompFrameError(msg)
    return length
