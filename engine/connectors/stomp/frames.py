"""Incremental parser for STOMP 1.2 frames in bounded memory; the result does not depend on how the bytes are split.

Specification: https://stomp.github.io/stomp-specification-1.2.html. Outgoing frames are written by `stomp.py` and
`message`, which also converts the headers of a MESSAGE frame. This parser replaces stomp.py's own, which loses a frame
after two heart-beats, and copies a large body once for each piece received.

The specification calls each fault of a frame the end of the connection. The broker would then send the same message on
the next one, for ever. So a fault within a frame whose end is known is a fault of that message alone.
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
_MOST_HEAD_END = 3
"""Bytes of the longest end of a head."""
_MIN_HEAD_BYTES = 1024 * 1024
_SHOWN = 40
"""Characters of a faulty header that a message to the operator shows."""
_UNKNOWN_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\(?![nrc\\])")
_UNESCAPED = {"\\n": "\n", "\\r": "\r", "\\c": ":", "\\\\": "\\"}
_ESCAPED = str.maketrans({char: escape for escape, char in _UNESCAPED.items()})


class StompFrameError(Exception):
    """Error in the received bytes: they are not STOMP 1.2, and nothing after them can be parsed."""


class StompFrame(NamedTuple):
    """Frame from the broker."""

    command: str
    headers: Mapping[str, str]
    """Unescaped headers in the order of the frame; of a repeated header the first. Bytes that are not UTF-8 are
    replaced by U+FFFD, unknown escapes stay as they are, and lines without a colon are left out: all have a `fault`."""
    body: bytes
    size: int
    """Size of the body as sent, in bytes; greater than `len(body)` if the body was too large to keep."""
    fault: str | None = None
    """First thing in the frame that is not STOMP 1.2, in one line for users; None if there is nothing."""


class _Head(NamedTuple):
    """Head of a frame: command and headers."""

    command: str
    headers: Mapping[str, str]
    length: int | None
    """Length of the body; None for a body that ends at the first NUL."""
    fault: str | None


class StompFrameParser:
    """Parser of one connection: takes received bytes and yields complete frames. Heart-beats are skipped."""

    def __init__(self, max_body_bytes: int, kept_bytes: int) -> None:
        """Creates a parser that keeps only the first `kept_bytes` of a body larger than `max_body_bytes`."""
        self._max_body = max_body_bytes
        self._kept = min(kept_bytes, max_body_bytes)
        self._max_head = max(max_body_bytes, _MIN_HEAD_BYTES)
        self._rest = bytearray()
        """Beginning of a head that is still incomplete; extended in place."""
        self._partial: _Partial | None = None

    def feed(self, data: bytes) -> Iterator[StompFrame]:
        """Yields the frames that `data` completes; the caller must exhaust the iterator before the next call.

        Raises:
            StompFrameError: the bytes are not STOMP 1.2, and the end of the frame is not known.
        """
        if self._rest:
            # The end of the head may have begun in the piece before.
            searched = max(len(self._rest) - _MOST_HEAD_END + 1, 0)
            self._rest += data
            if self._is_incomplete(searched):
                return
            data, self._rest = bytes(self._rest), bytearray()
        position = 0
        while True:
            if self._partial is None and (found := self._head(data, position)) is not None:
                head, start = found
                end = data.find(0, start) if head.length is None else start + head.length
                if start <= end < len(data) and end - start <= self._max_body:
                    if not data[end]:
                        yield StompFrame(head.command, head.headers, data[start:end], end - start, head.fault)
                        position = end + 1
                        continue
                    head = _without_length(head)
                self._partial, position = _Partial(head, self._max_body, self._kept), start
            if self._partial is None:
                return
            position = self._partial.take(data, position)
            if self._partial.has_wrong_length:
                data, position = self._partial.taken() + data[position:], 0
                self._partial = _Partial(_without_length(self._partial.head), self._max_body, self._kept)
                continue
            if not self._partial.complete:
                return
            frame, self._partial = self._partial.frame(), None
            yield frame

    def _head(self, data: bytes, position: int) -> tuple[_Head, int] | None:
        """Returns the head and the start of the body of the frame at `position`; None if its head is incomplete.

        An incomplete head is kept for the next `feed`.
        """
        position = _EOLS.match(data, position).end()  # type: ignore[union-attr] # the pattern also matches the empty string
        if match := _HEAD_END.search(data, position):
            end, body = match.span()
            return _parse_head(data[position:end]), body
        self._rest += data[position:]
        self._is_incomplete(len(self._rest))
        return None

    def _is_incomplete(self, searched: int) -> bool:
        """Returns True if the head that is kept has no end from an index on; raises StompFrameError if it is large."""
        if _HEAD_END.search(self._rest, searched):
            return False
        if len(self._rest) > self._max_head:
            msg = f"a frame with more than {self._max_head} bytes of headers"
            raise StompFrameError(msg)
        return True


class _Partial:
    """Frame whose headers are parsed, and whose body arrives in pieces or is too large."""

    __slots__ = ("_held", "_kept", "_most", "_pieces", "_size", "complete", "has_wrong_length", "head")

    def __init__(self, head: _Head, most: int, kept: int) -> None:
        self.complete = False
        self.has_wrong_length = False
        """True if no NUL stands where the body should end."""
        self.head = head
        self._most = most
        self._kept = kept
        self._pieces: list[bytes] = []
        self._held = 0
        self._size = 0

    def take(self, data: bytes, start: int) -> int:
        """Consumes the bytes of this frame from `start` on; returns the index behind the last byte consumed.

        Raises:
            StompFrameError: the content-length is wrong, and the body is not kept whole, so that its end is not known.
        """
        length = self.head.length
        end = data.find(0, start) if length is None else start + length - self._size
        if not 0 <= end < len(data):
            self._keep(data, start, len(data))
            return len(data)
        self._keep(data, start, end)
        if data[end]:
            if self._held < self._size:
                raise StompFrameError(_wrong_length(length))
            self.has_wrong_length = True
            return end
        self.complete = True
        return end + 1

    def taken(self) -> bytes:
        """Returns the bytes kept by now."""
        return b"".join(self._pieces)

    def frame(self) -> StompFrame:
        return StompFrame(self.head.command, self.head.headers, self.taken(), self._size, self.head.fault)

    def _keep(self, data: bytes, start: int, end: int) -> None:
        self._size += end - start
        # With a content-length a body is known to be too large from the first piece on; without one, only from the
        # piece that exceeds the limit.
        room = end - start if max(self._size, self.head.length or 0) <= self._most else self._kept - self._held
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


def _parse_head(head: bytes) -> _Head:
    """Parses a head without its empty line.

    Raises:
        StompFrameError: the command is not one of a broker.
    """
    fault = None
    try:
        text = head.decode()
    except UnicodeDecodeError:
        text = head.decode("utf-8", "replace")
        line = next(line for line in text.split("\n") if "\ufffd" in line)
        fault = f"a header line that is not UTF-8: {line[:_SHOWN]!r}"
    if "\r" in text:
        text = "\n".join([line.removesuffix("\r") for line in text.split("\n")])
    command, *lines = text.split("\n")
    if command not in _COMMANDS:
        msg = f"a frame begins with {command[:_SHOWN]!r}, which is not a STOMP command"
        raise StompFrameError(msg)
    # Of the frames that a broker sends, only CONNECTED has headers that are not escaped.
    escaped = "\\" in text and command != "CONNECTED"
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            fault = fault or f"a header line without a colon: {line[:_SHOWN]!r}"
            continue
        if escaped and "\\" in line:
            if _UNKNOWN_ESCAPE.search(line):
                fault = fault or f"a header line with an unknown escape: {line[:_SHOWN]!r}"
            name, value = _unescape(name), _unescape(value)
        headers.setdefault(name, value)
    stated = headers.get("content-length")
    length = None if stated is None else whole(stated.strip(" \t"))
    if stated is not None and length is None:
        fault = fault or f"a content-length that is not a number: {stated[:_SHOWN]!r}"
    return _Head(command, headers, length, fault)


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    plain: list[str] = []
    position = 0
    while (escape := text.find("\\", position)) >= 0:
        pair = text[escape : escape + 2]
        plain += (text[position:escape], _UNESCAPED.get(pair, pair))
        position = escape + 2
    return "".join((*plain, text[position:]))


def _wrong_length(length: int | None) -> str:
    return f"a body that does not end after its {length} bytes"


def _without_length(head: _Head) -> _Head:
    """Returns the head of a frame with a wrong content-length: its body ends at the first NUL."""
    return head._replace(length=None, fault=head.fault or _wrong_length(head.length))
