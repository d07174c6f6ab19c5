"""Subclass of nats-py's client with a parser of its own; the only module that uses nats-py's private members.

nats-py does the greeting, TLS, the login, keep-alive and requests. For each received message it uses a task, a queue
and an object, and its parser tries one pattern after the other on each line and moves all following bytes each time.
This client calls a handler as soon as the message is parsed, and writes sent bytes directly to the socket. nats-py also
continues without TLS when the server offers none; here that is an error.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nats.aio.client import Client as NatsClient
from nats.aio.transport import TcpTransport
from nats.errors import ProtocolError
from nats.protocol.parser import Parser as NatsParser

from engine.connectors.base import NotConnectedError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Client", "Handler", "Parser"]

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
_ERROR = re.compile(rb"^-ERR '(.*)'\r\n", re.MULTILINE)

# nats-py logs an error that ends the connection with a stack trace; the bridge reports the error itself, in one line.
logging.getLogger("nats").setLevel(logging.CRITICAL)


class Parser(NatsParser):
    """Incremental parser for the bytes of a NATS server, which calls the handlers of subscriptions.

    The result does not depend on how the bytes are split. Specification: the NATS client protocol, MSG and HMSG. All
    other lines are left to nats-py.
    """

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
        """Received bytes that are not parsed yet; none of them is empty."""
        self._held = 0
        """Number of bytes in the pieces."""
        self._missing = 0
        """Number of bytes still missing from a message whose line has been parsed; 0 or less if there is none."""

    async def parse(self, data: bytes = b"") -> None:
        """Parses received bytes and buffers an incomplete rest.

        Raises:
            nats.errors.ProtocolError: the bytes violate the protocol.
        """
        is_of_line = self._missing <= 0 and not self._ends_line(data)
        if data:
            self._pieces.append(data)
        self._held += len(data)
        self._missing -= len(data)
        # A line or a message is looked at once it is complete: its pieces may be single bytes.
        if self._missing > 0 or (is_of_line and self._held <= _LONGEST_LINE_BYTES):
            return
        data = b"".join(self._pieces)
        position = await self._take(data)
        self._pieces = [data[position:]] if position < len(data) else []
        self._held = len(data) - position
        self._parsed()

    def _ends_line(self, data: bytes) -> bool:
        """Returns True if a line ends in `data`, also one whose last byte but one was in the piece before."""
        return _CRLF in data or (data[:1] == _CRLF[1:] and bool(self._pieces) and self._pieces[-1][-1:] == _CRLF[:1])

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


class Client(NatsClient):
    """Connection to a NATS server. `send`, `ping` and the handlers run on the thread of the asyncio loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, came: Callable[[], None], *, tls: bool) -> None:
        """Creates the client without connecting.

        `came` is called after bytes from the server were parsed. With `tls`, connecting fails unless the server offers
        TLS; without it, connecting fails if the server requires TLS.
        """
        super().__init__()
        self._loop = loop
        self._wants_tls = tls
        self._handlers: dict[int, Handler] = {}
        self._ps = Parser(self, self._handlers, came)
        self._unread = b""
        """Bytes that the socket still had when a write failed; asyncio drops them."""

    async def listen(self, subject: str, handler: Handler, queue: str = "") -> int:
        """Subscribes to a subject and returns the subscription's number. The server may still refuse it later."""
        subscription = await self.subscribe(subject, queue)
        self._handlers[subscription._id] = handler
        return subscription._id

    def forget(self, number: int) -> None:
        """Ends a subscription. The handler still gets messages that arrive before the server has processed this."""
        self.send(b"UNSUB %d\r\n" % number)

    def send(self, data: bytes) -> None:
        """Writes complete protocol lines to the socket; bytes that the socket does not take now are buffered."""
        assert self._transport is not None
        self._transport.write(data)
        writer = self._transport._io_writer if isinstance(self._transport, TcpTransport) else None
        if writer is not None and writer.transport.is_closing() and not self._unread:
            self._unread = _unread_bytes(writer.transport)

    def ping(self, answered: Callable[[], None]) -> None:
        """Sends a PING; calls `answered` when the server has processed everything sent before it."""
        future: asyncio.Future[Any] = self._loop.create_future()
        future.add_done_callback(lambda _: answered())
        self._pongs.append(future)
        self.send(b"PING\r\n")

    @property
    def unsent_bytes(self) -> int:
        """Number of buffered bytes that the socket has not taken yet."""
        assert isinstance(self._transport, TcpTransport)
        writer = self._transport._io_writer
        return writer.transport.get_write_buffer_size() if writer else 0

    def abort(self) -> None:
        """Ends the connection and drops the buffered bytes."""
        if isinstance(self._transport, TcpTransport) and self._transport._bare_io_writer is not None:
            self._transport._bare_io_writer.transport.abort()

    @property
    def broken_by(self) -> Exception | None:
        """Exception that broke the connection, such as a TLS alert of the server.

        nats-py itself reports only that the connection is lost.
        """
        return self._reader.exception() if self._reader else None

    @property
    def last_words(self) -> str:
        """Text of the unread `-ERR` line that the server sent before it closed the connection; empty without one.

        When a login is refused, or a write fails, nats-py may notice the end of the connection before it reads that
        line.
        """
        match = _ERROR.search(bytes(getattr(self._reader, "_buffer", b"")) + self._unread)
        return match[1].decode("utf-8", "replace") if match else ""

    @property
    def wants_certificate(self) -> bool:
        """True if the server requires a client certificate."""
        return bool(self._server_info.get("tls_verify"))

    @property
    def reads(self) -> bool:
        """True if the client still reads from the server; False after bytes that are not the NATS protocol."""
        return self._reading_task is not None and not self._reading_task.done()

    @property
    def _reader(self) -> asyncio.StreamReader | None:
        return self._transport._io_reader if isinstance(self._transport, TcpTransport) else None

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        if initial_connection:
            if not self._wants_tls and info.get("tls_required"):
                raise NotConnectedError("the server requires TLS; write tls:// in place of nats:// in its url")
            if self._wants_tls and not (info.get("tls_required") or info.get("tls_available")):
                raise NotConnectedError("the server offers no TLS; nothing is sent to it in the clear")
            info["tls_required"] = self._wants_tls
        await super()._process_info(info, initial_connection)


def _unread_bytes(transport: asyncio.WriteTransport) -> bytes:
    """Returns the bytes that a plain socket has received and its transport has not read; empty over TLS."""
    found = transport.get_extra_info("socket")
    if found is None or found.fileno() < 0 or transport.get_extra_info("ssl_object") is not None:
        return b""
    with socket.socket(fileno=os.dup(found.fileno())) as copy:
        try:
            return copy.recv(_LONGEST_LINE_BYTES)
        except OSError:
            # The socket has nothing more, only the error that the transport reports.
            return b""
