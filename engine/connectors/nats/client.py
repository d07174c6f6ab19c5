"""nats-py's client with a short way in and out: the one place that knows what nats-py does not show.

nats-py makes the connection: greeting, TLS, login, keeping alive, requests. Its way of a message takes a task, a queue
and an object for each; here messages of some subscriptions are handed over as they are parsed, and bytes go straight
to the socket. It also goes on without TLS where the server offers none, which here is an error.
"""

from __future__ import annotations

import asyncio
import logging
import re
from typing import TYPE_CHECKING, Any

from nats.aio.client import Client as NatsClient
from nats.aio.transport import TcpTransport

from engine.connectors.base import NotConnectedError
from engine.connectors.nats.protocol import Parser

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.connectors.nats.protocol import Handler

__all__ = ["Client"]

_ERROR = re.compile(rb"^-ERR '(.*)'\r\n", re.MULTILINE)

# It logs errors with a stack trace that end the connection, which is told in one line.
logging.getLogger("nats").setLevel(logging.CRITICAL)


class Client(NatsClient):
    """One connection; `send`, `ping` and what handlers are called from run on the thread of its loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, came: Callable[[], None], *, tls: bool) -> None:
        """`came` is called after something came from the server; `tls`: whether nothing may be sent in the clear."""
        super().__init__()
        self._loop = loop
        self._wants_tls = tls
        self._handlers: dict[int, Handler] = {}
        self._ps = Parser(self, self._handlers, came)

    async def listen(self, subject: str, handler: Handler, queue: str = "") -> int:
        """Subscribes; the number of the subscription. The server may still refuse it."""
        subscription = await self.subscribe(subject, queue)
        self._handlers[subscription._id] = handler
        return subscription._id

    def forget(self, number: int) -> None:
        """Ends a subscription; what comes until the server knows is still handed over."""
        self.send(b"UNSUB %d\r\n" % number)

    def send(self, data: bytes) -> None:
        """Puts whole protocol lines on the socket, now as far as it takes them."""
        assert self._transport is not None
        self._transport.write(data)

    def ping(self, answered: Callable[[], None]) -> None:
        """Calls back when the server has dealt with all that was sent before."""
        future: asyncio.Future[Any] = self._loop.create_future()
        future.add_done_callback(lambda _: answered())
        self._pongs.append(future)
        self.send(b"PING\r\n")

    @property
    def unsent_bytes(self) -> int:
        """What the socket has not taken yet."""
        assert isinstance(self._transport, TcpTransport)
        writer = self._transport._io_writer
        return writer.transport.get_write_buffer_size() if writer else 0

    def abort(self) -> None:
        """Ends the connection without sending what the socket has not taken."""
        if isinstance(self._transport, TcpTransport) and self._transport._bare_io_writer is not None:
            self._transport._bare_io_writer.transport.abort()

    @property
    def broken_by(self) -> Exception | None:
        """What the connection broke by, such as what the other side of TLS said; nats-py tells that it is lost."""
        return self._reader.exception() if self._reader else None

    @property
    def last_words(self) -> str:
        """What a server that hung up on a login had said before; nats-py may see the end first."""
        found = _ERROR.search(bytes(getattr(self._reader, "_buffer", b"")))
        return found[1].decode("utf-8", "replace") if found else ""

    @property
    def wants_certificate(self) -> bool:
        """Whether the server asks for one of ours."""
        return bool(self._server_info.get("tls_verify"))

    @property
    def reads(self) -> bool:
        """Whether it still listens to the server; False after bytes that are no NATS protocol."""
        return self._reading_task is not None and not self._reading_task.done()

    @property
    def _reader(self) -> asyncio.StreamReader | None:
        return self._transport._io_reader if isinstance(self._transport, TcpTransport) else None

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        if initial_connection:
            if not self._wants_tls and info.get("tls_required"):
                raise NotConnectedError("the server wants TLS; write tls:// in place of nats:// in its url")
            if self._wants_tls and not (info.get("tls_required") or info.get("tls_available")):
                raise NotConnectedError("the server offers no TLS; nothing is sent to it in the clear")
            info["tls_required"] = self._wants_tls
        await super()._process_info(info, initial_connection)
