"""Messages out of the bytes of a NATS server: any cut of the stream gives the same messages.

Specification: the NATS client protocol, MSG and HMSG. nats-py's parser tries one pattern after the other on each line,
moves all bytes behind it, and takes a coroutine for each message. This one cuts out the messages of subscriptions that
have a handler, and leaves all else to nats-py.
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
"""Takes subject, reply, header block and body of one message, the middle two perhaps empty; must not raise."""

_CRLF = b"\r\n"
_WITH_HEADERS = b"HMSG"
_MESSAGES = (b"MSG ", b"HMSG ")
_LONGEST_LINE_BYTES = 1024 * 1024
_LARGEST_BYTES = 128 * 1024 * 1024
"""Of a message; servers keep 64 MiB for a client before they hang up."""
_WORDS = (4, 5)
"""Of a message's line without the length of its headers: verb, subject, number, perhaps reply, length."""


class Parser(NatsParser):
    """The parser of one connection."""

    def __init__(self, client: NatsClient, handlers: Mapping[int, Handler], parsed: Callable[[], None]) -> None:
        """`handlers` are by number of subscription; `parsed` is called when all that has come was dealt with."""
        super().__init__(client)
        self._handlers = handlers
        self._parsed = parsed

    def reset(self) -> None:
        """Forgets what has come."""
        super().reset()
        self._pieces: list[bytes] = []
        self._missing = 0
        """Bytes to come before a message is complete, if its line has come."""

    async def parse(self, data: bytes = b"") -> None:
        """Takes bytes as they come; nats-py's ProtocolError if they are none of the protocol."""
        self._pieces.append(data)
        self._missing -= len(data)
        if self._missing > 0:
            return
        data = b"".join(self._pieces)
        position = await self._take(data)
        self._pieces = [data[position:]] if position < len(data) else []
        self._parsed()

    async def _take(self, data: bytes) -> int:
        """Deals with what is complete; where the rest begins."""
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
    """Subject, number of the subscription, reply, and the bytes of headers and of all."""
    words = line.split()
    try:
        head_bytes = int(words.pop(-2)) if words[0] == _WITH_HEADERS else 0
        number, size = int(words[2]), int(words[-1])
    except (IndexError, ValueError) as error:
        raise ProtocolError from error
    if len(words) not in _WORDS or not 0 <= head_bytes <= size <= _LARGEST_BYTES:
        raise ProtocolError
    return words[1], number, words[3] if len(words) == _WORDS[1] else b"", head_bytes, size
