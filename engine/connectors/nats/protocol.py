"""Incremental parser for the bytes of a NATS server; the result does not depend on how the bytes are split.

Specification: the NATS client protocol, MSG and HMSG. nats-py's parser tries one pattern after the other on each line,
moves all following bytes each time, and runs a coroutine for each message. This parser handles messages itself, and
leaves all other lines to nats-py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from nats.errors import ProtocolError
from nats.protocol.parser import Parser as NatsParser

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nats.aio.client import Client as NatsClient

__all__ = ["Handler", "Parser"]

Handler = Callable[[bytes, bytes, bytes, bytes], None]
"""Callback with subject, reply subject, header block and body of one message; reply subject and header block may be
empty. It must not raise."""

_CRLF = b"\r\n"
_WITH_HEADERS = b"HMSG"
_MESSAGES = (b"MSG ", b"HMSG ")
_LONGEST_LINE_BYTES = 1024 * 1024
_LARGEST_BYTES = 128 * 1024 * 1024
"""Maximum size of a message; servers buffer 64 MiB for a client before they close the connection."""
_WORDS = (4, 5)
"""Possible numbers of words in a message's line, not counting the header length: verb, subject, subscription number,
optional reply subject, length."""


class Parser(NatsParser):
    """Parser of one connection, which calls the handlers of subscriptions."""

    def __init__(self, client: NatsClient, handlers: Mapping[int, Handler], parsed: Callable[[], None]) -> None:
        """Creates the parser.

        `handlers` maps subscription numbers to handlers; a message without one goes to nats-py. `parsed` is called
        after each `parse` that could make progress.
        """
        super().__init__(client)
        self._handlers = handlers
        self._parsed = parsed

    def reset(self) -> None:
        """Drops buffered bytes; also called by nats-py's constructor."""
        super().reset()
        self._pieces: list[bytes] = []
        self._missing = 0
        """Number of bytes still missing from a message whose line has been parsed; 0 or less if there is none."""

    async def parse(self, data: bytes = b"") -> None:
        """Parses received bytes and buffers an incomplete rest.

        Raises:
            nats.errors.ProtocolError: the bytes violate the protocol.
        """
        self._pieces.append(data)
        self._missing -= len(data)
        if self._missing > 0:
            return
        data = b"".join(self._pieces)
        position = await self._take(data)
        self._pieces = [data[position:]] if position < len(data) else []
        self._parsed()

    async def _take(self, data: bytes) -> int:
        """Handles all complete lines and messages in `data`; returns the index of the incomplete rest."""
        position = 0
        while (line_end := data.find(_CRLF, position)) >= 0:
            start = line_end + len(_CRLF)
            if not data.startswith(_MESSAGES, position):
                await super().parse(data[position:start])
                if self.buf:
                    raise ProtocolError
                position = start
                continue
            subject, number, reply, head_bytes, size = _line(data[position:line_end])
            end = start + size
            if len(data) < end + len(_CRLF):
                self._missing = end + len(_CRLF) - len(data)
                return position
            if not data.startswith(_CRLF, end):
                raise ProtocolError
            body = start + head_bytes
            if (handler := self._handlers.get(number)) is not None:
                handler(subject, reply, data[start:body], data[body:end])
            else:
                await self.nc._process_msg(number, subject, reply, data[body:end], data[start:body] or None)
            position = end + len(_CRLF)
        if len(data) - position > _LONGEST_LINE_BYTES:
            raise ProtocolError
        return position


def _line(line: bytes) -> tuple[bytes, int, bytes, int, int]:
    """Returns subject, subscription number, reply subject, size of the header block and total size, both in bytes."""
    words = line.split()
    try:
        head_bytes = int(words.pop(-2)) if words[0] == _WITH_HEADERS else 0
        number, size = int(words[2]), int(words[-1])
    except (IndexError, ValueError) as error:
        raise ProtocolError from error
    if len(words) not in _WORDS or not 0 <= head_bytes <= size <= _LARGEST_BYTES:
        raise ProtocolError
    return words[1], number, words[3] if len(words) == _WORDS[1] else b"", head_bytes, size
