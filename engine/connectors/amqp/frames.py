"""Parser and encoder of AMQP 1.0 frames (OASIS AMQP 1.0, part 2.3; SASL frames: part 5.3).

The parser gives the same frames however the stream of bytes is cut, and its memory is bounded by the largest frame. The
contents of frames are in `performatives`.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "AMQP",
    "EMPTY",
    "MAX_FRAME_BYTES",
    "PROTOCOL_HEADER",
    "SASL",
    "SASL_HEADER",
    "AmqpFrameError",
    "AmqpFrameParser",
    "frame",
]

AMQP, SASL = 0, 1
"""Frame types."""
PROTOCOL_HEADER = b"AMQP\x00\x01\x00\x00"
SASL_HEADER = b"AMQP\x03\x01\x00\x00"
EMPTY = b"\x00\x00\x00\x08\x02\x00\x00\x00"
"""An empty frame: a heart-beat."""
MAX_FRAME_BYTES = 1024 * 1024
"""Largest frame that the bridge accepts."""

_HEAD = struct.Struct(">IBBH")
_WORDS = 4


class AmqpFrameError(Exception):
    """The stream is not AMQP 1.0. Nothing that follows in the stream can be parsed."""


class AmqpFrameParser:
    """Splits a stream of bytes into frames. Skips empty frames."""

    def __init__(self, max_bytes: int = MAX_FRAME_BYTES) -> None:
        """Sets the size of the largest frame that is accepted."""
        self._max = max_bytes
        self._rest = bytearray()
        """Beginning of a frame that is still incomplete; extended in place."""
        self._missing = 0
        """Bytes that the incomplete frame still lacks; 0 until its size is known."""
        self.completed = 0
        """Number of complete frames so far, empty ones included."""

    @property
    def held_bytes(self) -> int:
        """Bytes of the incomplete frame."""
        return len(self._rest)

    def header(self, data: bytes) -> bytes | None:
        """Returns the protocol header at the beginning of a stream; None until it is complete.

        Raises:
            FrameError: the stream does not begin with an AMQP header.
        """
        self._rest += data
        if not self._rest.startswith(b"AMQP"[: len(self._rest)]):
            msg = f"{bytes(self._rest[:20])!r} in place of an AMQP header"
            raise AmqpFrameError(msg)
        if len(self._rest) < len(PROTOCOL_HEADER):
            return None
        header, self._rest = bytes(self._rest[: len(PROTOCOL_HEADER)]), self._rest[len(PROTOCOL_HEADER) :]
        return header

    def one(self, data: bytes) -> tuple[int, int, bytes] | None:
        """Returns only the first frame, for a stream that may go on with something else; None until it is complete.

        Raises:
            FrameError: the stream is not AMQP 1.0.
        """
        self._rest += data
        while len(self._rest) >= _HEAD.size:
            size = max(int.from_bytes(self._rest[:4]), _HEAD.size)
            if len(self._rest) < size <= self._max:
                return None
            first, after = bytes(self._rest[:size]), self._rest[size:]
            self._rest = bytearray()
            frame = next(self.feed(first), None)
            self._rest = after
            if frame is not None:
                return frame
        return None

    def feed(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Yields type, channel and body of the frames that `data` completes; to be exhausted before the next call.

        Raises:
            FrameError: the stream is not AMQP 1.0.
        """
        self._missing -= len(data)
        if self._missing > 0:
            self._rest += data
            return
        if self._rest:
            self._rest += data
            data, self._rest = bytes(self._rest), bytearray()
        self._missing = 0
        position, end = 0, len(data)
        while end - position >= _HEAD.size:
            size, words, kind, channel = _HEAD.unpack_from(data, position)
            start = words * _WORDS
            if not _HEAD.size <= start <= size <= self._max:
                msg = f"a frame of {size} bytes whose body begins at {start}; at most {self._max} bytes are taken"
                raise AmqpFrameError(msg)
            if end - position < size:
                self._missing = size - (end - position)
                break
            self.completed += 1
            if size > start:
                yield kind, channel, data[position + start : position + size]
            position += size
        self._rest += data[position:]


def frame(channel: int, body: bytes, kind: int = AMQP) -> bytes:
    """Encodes a frame."""
    return _HEAD.pack(_HEAD.size + len(body), 2, kind, channel) + body
