"""The connection under a NATS source or sink: made, used and watched from one thread, which also runs its loop.

nats-py lives in an asyncio loop. There is no thread for it: the loop runs while somebody waits for something here, and
only then. So nothing reads ahead, and what is not asked for stays on the socket and with the server. Loops call in
several times a second, often enough to answer the server's heart-beats.

A connection that ends is not taken up again by nats-py but told to the loop, which makes a new one.
"""

from __future__ import annotations

import asyncio
import re
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import structlog
from nats import errors

from engine.connectors.base import NotConnectedError
from engine.connectors.nats.client import Client
from engine.connectors.nats.credentials import Credentials
from engine.connectors.tls import tls_context, why

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from engine.connectors.nats.protocol import Handler
    from routes.model import BrokerConfig, Config

__all__ = ["Connection", "NotAllowedError"]

T = TypeVar("T")

_CONNECT_SECONDS = 10
_ANSWER_SECONDS = 10.0
_GOOD_BYE_SECONDS = 5.0
_SOON_SECONDS = 0.1
_REFUSED_SECONDS = 30.0
_MOST_UNSENT_BYTES = 4 * 1024 * 1024
_SILENT_BEATS = 2
_UNNOTICED_BEATS = _SILENT_BEATS + 1
_TURNS = 4
"""Of the loop, from bytes on the socket to a handler: read, wake the reader, parse, and one for what that caused."""
_VIOLATION = re.compile(r'permissions violation for (publish|subscription) to "([^"]*)"')
_LOGIN = re.compile("authori[sz]ation|authentication|credentials")
_log = structlog.get_logger(__name__)


class NotAllowedError(NotConnectedError):
    """The server does not let the bridge use a subject, until somebody grants it."""


class Connection:
    """Connects, and is told of everything that goes wrong later; a new one is made after each `close`."""

    def __init__(self, config: Config, broker: BrokerConfig) -> None:
        """SetupError where a TLS or credentials file is no good."""
        self.url = config.url(broker)
        self._broker = broker
        self._name = f"{broker.client_id or config.bridge_id}.{broker.name}"
        self._tls = tls_context(broker) if self.url.startswith("tls://") else None
        self._credentials = Credentials.read(broker)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: Client | None = None
        self._fault: NotConnectedError | None = None
        self._cause: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._opening = False
        self.on_publish_violation: Callable[[str], bool] = lambda _: False
        """Takes a subject, in lower case, that the server does not let us publish to; whether that is dealt with."""

    def open(self) -> None:
        """Connects and logs in; raises NotConnectedError with what went wrong, in one line."""
        self.close()
        self._loop = asyncio.new_event_loop()
        # What goes wrong in a task of nats-py ends the connection, and is told then.
        self._loop.set_exception_handler(lambda _, context: _log.debug("in nats-py", what=context.get("message")))
        self._client = Client(self._loop, self.wake, tls=self._tls is not None)
        self._fault = self._cause = None
        self._opening = True
        try:
            self.run(self._connect(self._client), _CONNECT_SECONDS * 3)
        except NotConnectedError as error:
            self._fault = error
            self.close()
            raise
        finally:
            self._opening = False

    @property
    def max_payload(self) -> int:
        """Bytes of headers and body that the server takes in one message."""
        return self._opened().max_payload

    @property
    def unnoticed_seconds(self) -> float:
        """For how long a dead connection may go unnoticed."""
        return self._broker.heartbeat_seconds * _UNNOTICED_BEATS

    @property
    def lost(self) -> bool:
        """Whether there is no working connection."""
        return self._client is None or self._fault is not None

    def check(self) -> None:
        """NotConnectedError if the connection is gone."""
        client = self._opened()
        if self._fault is None and client.is_closed:
            self._ended(client)
        elif self._fault is None and not client.reads and not self._opening:
            self.fail("the server sent what is no NATS protocol")
        if self._fault is not None:
            raise self._fault

    def run(self, work: Coroutine[Any, Any, T], seconds: float = _ANSWER_SECONDS) -> T:
        """Runs it to its end; NotConnectedError if it takes too long or the connection goes."""
        assert self._loop is not None
        task = self._loop.create_task(work)
        deadline = time.monotonic() + seconds
        task.add_done_callback(lambda _: self.wake())
        while not task.done() and self._fault is None and (left := deadline - time.monotonic()) > 0:
            self._loop.run_until_complete(self._idle(left, task.done))
        if task.done():
            try:
                return task.result()
            except errors.NoRespondersError:
                raise
            except (OSError, errors.Error) as error:
                raise self._fault or self.fail(str(_refusal(error))) from error
        task.cancel()
        self._loop.run_until_complete(_turns())
        raise self._fault or self.fail(f"the server has not answered for {seconds:.0f} s")

    def wait(self, timeout_seconds: float, ready: Callable[[], object]) -> None:
        """Lets in what comes until something is ready; 0 lets in what is there already. Does not tell of a loss."""
        if self._loop is not None and self._fault is None:
            self._loop.run_until_complete(self._idle(timeout_seconds, ready))

    def wake(self) -> None:
        """Makes `wait` look again whether something is ready."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def listen(self, subject: str, handler: Handler, queue: str = "") -> int:
        """Subscribes; returns when the server has taken it, with the number for `forget`."""
        number = self.run(self._opened().listen(subject, handler, queue))
        self.flush()
        return number

    def forget(self, number: int) -> None:
        """Ends a subscription."""
        self._opened().forget(number)

    def send(self, data: bytes) -> None:
        """Protocol lines to the server, now as far as the socket takes them; waits where it takes nothing."""
        client = self._opened()
        self.check()
        client.send(data)
        deadline = time.monotonic() + _ANSWER_SECONDS
        while (unsent := client.unsent_bytes) > _MOST_UNSENT_BYTES:
            self.wait(0.01, lambda: False)
            self.check()
            if client.unsent_bytes < unsent:
                deadline = time.monotonic() + _ANSWER_SECONDS
            elif time.monotonic() > deadline:
                raise self.fail(f"the server has read nothing for {_ANSWER_SECONDS:.0f} s")

    def put(self, data: bytes) -> None:
        """The same without waiting, for handlers."""
        if not self.lost:
            self._opened().send(data)

    def ping(self, answered: Callable[[], None]) -> None:
        """Calls back when the server has dealt with all that was sent before."""

        def woken() -> None:
            answered()
            self.wake()

        self.check()
        self._opened().ping(woken)

    def flush(self, seconds: float = _ANSWER_SECONDS) -> None:
        """Returns when the server has dealt with all that was sent."""
        answers: list[bool] = []
        self.ping(lambda: answers.append(True))
        deadline = time.monotonic() + seconds
        while not answers and (left := deadline - time.monotonic()) > 0:
            self.wait(left, lambda: answers)
            self.check()
        if not answers:
            raise self.fail(f"the server has not answered for {seconds:.0f} s")

    def request(self, subject: str, payload: bytes) -> bytes:
        """The answer of whoever serves that subject; nats-py's NoRespondersError if nobody does."""
        return self.run(self._opened().request(subject, payload, _ANSWER_SECONDS)).data

    def new_inbox(self) -> str:
        """A subject that nobody else uses."""
        return self._opened().new_inbox()

    def fail(self, reason: str, back_off_seconds: float | None = None) -> NotConnectedError:
        """The connection is of no more use: what `check` raises from now on, the first reason there was."""
        if self._fault is None:
            self._fault = NotConnectedError(reason, back_off_seconds)
        self.wake()
        return self._fault

    def leave(self, good_bye: Callable[[], None]) -> None:
        """Closes, after doing what belongs to it where the connection still works. Never raises."""
        if self._client is None:
            return
        try:
            if not self.lost:
                good_bye()
                self.flush(_GOOD_BYE_SECONDS)
        except NotConnectedError as error:
            _log.warning("left without a good-bye", name=self._broker.name, broker=self.url, why=str(error))
        finally:
            self.close()

    def close(self) -> None:
        """Ends the connection at once. Never raises."""
        client, self._client = self._client, None
        loop, self._loop = self._loop, None
        if client is None or loop is None:
            return
        if self._fault is not None:
            # It would wait for what is not sent yet.
            client.abort()
        loop.run_until_complete(_end(client, _GOOD_BYE_SECONDS if self._fault is None else _SOON_SECONDS))
        loop.close()

    async def _connect(self, client: Client) -> None:
        broker, credentials = self._broker, self._credentials
        signs = {"user_jwt_cb": credentials.jwt.encode, "signature_cb": credentials.sign} if credentials else {}
        try:
            await client.connect(
                self.url,
                error_cb=self._on_error,
                closed_cb=self._on_close,
                name=self._name,
                allow_reconnect=False,
                connect_timeout=_CONNECT_SECONDS,
                ping_interval=self._broker.heartbeat_seconds,  # type: ignore[arg-type] # it only sleeps for so long
                max_outstanding_pings=_SILENT_BEATS,
                tls=self._tls,
                user=broker.username,
                password=(broker.password or "") if broker.username else None,
                token=broker.token,
                pending_size=-1,
                **signs,  # type: ignore[arg-type]
            )
        except OSError as error:
            raise _broken(client, error) from error
        except errors.Error as error:
            raise _refusal(error) from error
        if not client.is_connected:
            raise NotConnectedError("the server has closed the connection")

    async def _idle(self, timeout_seconds: float, ready: Callable[[], object]) -> None:
        if timeout_seconds <= 0 or not ready():
            await _turns()
        if timeout_seconds <= 0:
            return
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout_seconds
        while self._fault is None and not ready() and loop.time() < end:
            self._waiter = loop.create_future()
            timer = loop.call_at(end, self.wake)
            await self._waiter
            timer.cancel()

    async def _on_error(self, error: Exception) -> None:
        """What nats-py tells beside its own work."""
        if self._opening:
            # It would try again by itself.
            raise error
        found = _VIOLATION.search(str(error))
        if found is None:
            self._cause = self._cause or error
        elif found[1] != "publish" or not self.on_publish_violation(found[2]):
            what = "publish to" if found[1] == "publish" else "subscribe to"
            why = f"the server does not allow the bridge to {what} '{found[2]}'; grant it"
            self._fault = self._fault or NotAllowedError(why, _REFUSED_SECONDS)
        self.wake()

    async def _on_close(self) -> None:
        if self._client is not None:
            self._ended(self._client)

    def _ended(self, client: Client) -> None:
        error = self._cause or client.last_error
        refusal = _refusal(error) if error else NotConnectedError("the server has closed the connection")
        self.fail(str(refusal), refusal.back_off_seconds)

    def _opened(self) -> Client:
        if self._client is None:
            raise NotConnectedError("not connected")
        return self._client


async def _end(client: Client, seconds: float) -> None:
    # Not even a server that does not answer may hold it up, nor an error of a connection that ends anyway.
    with suppress(Exception):
        await asyncio.wait_for(client.close(), seconds)
    client.abort()
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await _turns()


async def _turns() -> None:
    """Lets what is on the socket come through, and transports say that they are closed."""
    for _ in range(_TURNS):
        await asyncio.sleep(0)


def _broken(client: Client, error: OSError) -> NotConnectedError:
    """What broke a connection while it was made: the end of the socket may be seen before what the server said."""
    if said := client.last_words:
        return _refusal(errors.Error(said))
    refusal = _refusal(client.broken_by or error)
    if client.wants_certificate and isinstance(error, ConnectionError) and "tls.certificate" not in str(refusal):
        return NotConnectedError(f"{refusal}; it wants a certificate of the bridge (tls.certificate), or another one")
    return refusal


def _refusal(error: Exception) -> NotConnectedError:
    """What ended a connection, or kept it from being made."""
    if isinstance(error, NotConnectedError):
        return error
    if isinstance(error, errors.UnexpectedEOF):
        return NotConnectedError("the server has closed the connection")
    if isinstance(error, errors.StaleConnectionError):
        return NotConnectedError("the server has been silent, in spite of heart-beats")
    if isinstance(error, errors.AuthorizationError):
        return NotConnectedError("the server refuses the login: authorization violation", _REFUSED_SECONDS)
    if isinstance(error, TimeoutError) and not error.errno:
        return NotConnectedError(f"the server has not answered for {_CONNECT_SECONDS} s; is this its client port?")
    if isinstance(error, OSError):
        return NotConnectedError(why(error))
    said = str(error).removeprefix("nats: ").strip("' ").lower()
    if "expecting info message" in said or "json parse" in said:
        return NotConnectedError("it does not greet like a NATS server; is this its client port?")
    if _LOGIN.search(said):
        return NotConnectedError(f"the server refuses the login: {said}", _REFUSED_SECONDS)
    return NotConnectedError(f"the server says: {said}" if said else type(error).__name__)
