"""Connection of a NATS source or sink: opened, used and monitored from one thread, which also runs its asyncio loop.

nats-py needs an asyncio loop. The loop has no thread of its own: it runs only while a method of `Connection` waits. So
nothing is read ahead; messages that were not asked for stay on the socket and at the server. `source_loop` and
`sink_loop` call in several times a second, often enough to answer the server's PINGs.

nats-py does not reconnect. The end of the connection is reported as `NotConnectedError` to `source_loop` or
`sink_loop`, which connects again.
"""

from __future__ import annotations

import asyncio
import base64
import re
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import nkeys  # type: ignore[import-untyped] # it has no types
import structlog
from nats import errors

from engine.connectors.base import NotConnectedError
from engine.connectors.nats.client import Client
from engine.connectors.tls import tls_context, why
from engine.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from engine.connectors.endpoint import SystemEndpoint
    from engine.connectors.nats.client import Handler
    from engine.connectors.nats.settings import NatsConfig

__all__ = ["Connection", "Credentials", "NotAllowedError"]

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
"""Iterations of the asyncio loop from bytes on the socket to a handler: read, wake the reader, parse, and one for
callbacks that this caused."""
_VIOLATION = re.compile(r'permissions violation for (publish|subscription) to "([^"]*)"')
_LOGIN = re.compile("authori[sz]ation|authentication|credentials")
_log = structlog.get_logger(__name__)
_PART = "-{3,}BEGIN %s-{3,}\\s+(\\S+)\\s+-{3,}END"
_JWT = re.compile(_PART % "NATS USER JWT")
_SEED = re.compile(_PART % "USER NKEY SEED")


class NotAllowedError(NotConnectedError):
    """The server denies the bridge the use of a subject; the operator has to grant the permission."""


class Connection:
    """Connection of one source or sink to its NATS server. `open` may be called again, also after `close`.

    The first fault ends the connection; `check` and the other methods raise it from then on.
    """

    def __init__(self, endpoint: SystemEndpoint[NatsConfig]) -> None:
        """Reads TLS and credentials files; does not connect.

        Raises:
            SetupError: a TLS or credentials file is missing or invalid.
        """
        broker = endpoint.settings
        self.url = endpoint.url
        self._broker = broker
        self._name = f"{broker.client_id or endpoint.bridge_id}.{broker.name}"
        self._tls = tls_context(broker) if self.url.startswith("tls://") else None
        self._credentials = Credentials.read(broker)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: Client | None = None
        self._fault: NotConnectedError | None = None
        self._cause: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._opening = False
        self.on_publish_violation: Callable[[str], bool] = lambda _: False
        """Called with the subject, in lower case, that the server denies the bridge to publish to. If it returns False,
        the connection fails with `NotAllowedError`."""

    def open(self) -> None:
        """Connects and logs in.

        Raises:
            NotConnectedError: the reason why it failed, in one line.
        """
        self.close()
        self._loop = asyncio.new_event_loop()
        # An error in a task of nats-py ends the connection, and is reported as its fault.
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
        """Maximum bytes of headers and body together that the server accepts in one message."""
        return self._opened().max_payload

    @property
    def unnoticed_seconds(self) -> float:
        """Maximum seconds until a dead connection is noticed."""
        return self._broker.heartbeat_seconds * _UNNOTICED_BEATS

    @property
    def lost(self) -> bool:
        """True if there is no working connection."""
        return self._client is None or self._fault is not None

    def check(self) -> None:
        """Raises NotConnectedError if the connection is lost."""
        client = self._opened()
        if self._fault is None and client.is_closed:
            self._ended(client)
        elif self._fault is None and not client.reads and not self._opening:
            self.fail("the server sent bytes that are not NATS protocol")
        if self._fault is not None:
            raise self._fault

    def run(self, work: Coroutine[Any, Any, T], seconds: float = _ANSWER_SECONDS) -> T:
        """Runs a coroutine to its end and returns its result.

        Raises:
            NotConnectedError: no result within `seconds`, or the connection is lost.
            nats.errors.NoRespondersError: the coroutine was a request that no service answers.
        """
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
        """Receives messages until `ready()` is true or the time is over; 0 receives only those already on the socket.

        Does not raise when the connection is lost.
        """
        if self._loop is not None and self._fault is None:
            self._loop.run_until_complete(self._idle(timeout_seconds, ready))

    def wake(self) -> None:
        """Makes `wait` evaluate its condition again."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def listen(self, subject: str, handler: Handler, queue: str = "") -> int:
        """Subscribes to a subject; returns the number for `forget` when the server has processed the subscription."""
        number = self.run(self._opened().listen(subject, handler, queue))
        self.flush()
        return number

    def forget(self, number: int) -> None:
        """Ends the subscription with this number."""
        self._opened().forget(number)

    def send(self, data: bytes) -> None:
        """Sends complete protocol lines; waits while more than `_MOST_UNSENT_BYTES` are buffered.

        Raises:
            NotConnectedError: the connection is lost, or the server has read nothing for `_ANSWER_SECONDS`.
        """
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
        """Sends protocol lines without waiting, for handlers; does nothing on a lost connection."""
        if not self.lost:
            self._opened().send(data)

    def ping(self, answered: Callable[[], None]) -> None:
        """Sends a PING; calls `answered` when the server has processed everything sent before it."""

        def woken() -> None:
            answered()
            self.wake()

        self.check()
        self._opened().ping(woken)

    def flush(self, seconds: float = _ANSWER_SECONDS) -> None:
        """Waits until the server has processed everything that was sent.

        Raises:
            NotConnectedError: no answer within `seconds`, or the connection is lost.
        """
        answers: list[bool] = []
        self.ping(lambda: answers.append(True))
        deadline = time.monotonic() + seconds
        while not answers and (left := deadline - time.monotonic()) > 0:
            self.wait(left, lambda: answers)
            self.check()
        if not answers:
            raise self.fail(f"the server has not answered for {seconds:.0f} s")

    def request(self, subject: str, payload: bytes) -> bytes:
        """Sends a request and returns the payload of the reply.

        Raises:
            nats.errors.NoRespondersError: no service subscribes to the subject.
            NotConnectedError: no reply in time, or the connection is lost.
        """
        return self.run(self._opened().request(subject, payload, _ANSWER_SECONDS)).data

    def new_inbox(self) -> str:
        """Returns a new unique subject for replies."""
        return self._opened().new_inbox()

    def fail(self, reason: str, back_off_seconds: float | None = None) -> NotConnectedError:
        """Marks the connection as failed and returns the error that `check` raises from now on.

        If the connection has failed before, the first reason stays.
        """
        if self._fault is None:
            self._fault = NotConnectedError(reason, back_off_seconds)
        self.wake()
        return self._fault

    def leave(self, good_bye: Callable[[], None]) -> None:
        """Closes the connection; first calls `good_bye` and flushes if the connection still works. Never raises."""
        if self._client is None:
            return
        try:
            if not self.lost:
                good_bye()
                self.flush(_GOOD_BYE_SECONDS)
        except NotConnectedError as error:
            _log.warning("closed without confirmation", name=self._broker.name, broker=self.url, why=str(error))
        finally:
            self.close()

    def close(self) -> None:
        """Ends the connection at once. Never raises."""
        client, self._client = self._client, None
        loop, self._loop = self._loop, None
        if client is None or loop is None:
            return
        if self._fault is not None:
            # Closing in order would wait for the bytes that are still buffered.
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
        """Handles an error that nats-py reports by its `error_cb`."""
        if self._opening:
            # Without this nats-py would try to connect again by itself.
            raise error
        match = _VIOLATION.search(str(error))
        if match is None:
            self._cause = self._cause or error
        elif match[1] != "publish" or not self.on_publish_violation(match[2]):
            what = "publish to" if match[1] == "publish" else "subscribe to"
            why = f"the server does not allow the bridge to {what} '{match[2]}'; grant it"
            self._fault = self._fault or NotAllowedError(why, _REFUSED_SECONDS)
        self.wake()

    async def _on_close(self) -> None:
        if self._client is not None:
            self._ended(self._client)

    def _ended(self, client: Client) -> None:
        error = self._cause or client.last_error
        if (error is None or isinstance(error, OSError)) and (words := client.last_words):
            # A write failed before it was read why the server has closed the connection.
            error = errors.Error(words)
        refusal = _refusal(error) if error else NotConnectedError("the server has closed the connection")
        self.fail(str(refusal), refusal.back_off_seconds)

    def _opened(self) -> Client:
        if self._client is None:
            raise NotConnectedError("not connected")
        return self._client


async def _end(client: Client, seconds: float) -> None:
    # Neither a server that does not answer nor an error may delay this: the connection ends anyway.
    with suppress(Exception):
        await asyncio.wait_for(client.close(), seconds)
    client.abort()
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await _turns()


async def _turns() -> None:
    """Runs the loop until bytes on the socket have reached handlers and transports have reported their close."""
    for _ in range(_TURNS):
        await asyncio.sleep(0)


def _broken(client: Client, error: OSError) -> NotConnectedError:
    """Builds the error for a connection that broke while connecting.

    The end of the socket may be noticed before the server's `-ERR` line is read, so that line counts first.
    """
    if words := client.last_words:
        return _refusal(errors.Error(words))
    refusal = _refusal(client.broken_by or error)
    if client.wants_certificate and isinstance(error, ConnectionError) and "tls.certificate" not in str(refusal):
        return NotConnectedError(f"{refusal}; it wants a certificate of the bridge (tls.certificate), or another one")
    return refusal


def _refusal(error: Exception) -> NotConnectedError:
    """Translates the error that ended or prevented a connection, with one line for the operator."""
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
    text = str(error).removeprefix("nats: ").strip("' ").lower()
    if "expecting info message" in text or "json parse" in text:
        return NotConnectedError("it does not greet like a NATS server; is this its client port?")
    if _LOGIN.search(text):
        return NotConnectedError(f"the server refuses the login: {text}", _REFUSED_SECONDS)
    return NotConnectedError(f"the server says: {text}" if text else type(error).__name__)


@dataclass(frozen=True, slots=True)
class Credentials:
    """JWT and nkey seed of a user, as read from a credentials file.

    nats-py has a reader of its own, but it loops for ever on a file without a JWT.
    """

    jwt: str = field(repr=False)
    seed: str = field(repr=False)

    @staticmethod
    def read(broker: NatsConfig) -> Credentials | None:
        """Reads the file named by the broker's `credentials` key; returns None if the key is not set.

        Raises:
            SetupError: the file cannot be read, or has no JWT or no valid seed.
        """
        if broker.credentials is None:
            return None
        try:
            text = broker.credentials.read_text("ascii")
        except (OSError, ValueError) as error:
            msg = f"'{broker.name}': credentials {broker.credentials} cannot be read: {error}"
            raise SetupError(msg) from error
        jwt, seed = _JWT.search(text), _SEED.search(text)
        if jwt is None or seed is None:
            what = "user JWT" if jwt is None else "user seed"
            raise SetupError(f"'{broker.name}': credentials {broker.credentials} have no {what} in them")
        credentials = Credentials(jwt[1], seed[1])
        try:
            credentials.sign("")
        except (nkeys.NkeysError, ValueError) as error:
            msg = f"'{broker.name}': credentials {broker.credentials} have no valid user seed in them"
            raise SetupError(msg) from error
        return credentials

    def sign(self, nonce: str) -> bytes:
        """Returns the signature of the server's nonce, in base64."""
        pair = nkeys.from_seed(bytearray(self.seed.encode()))
        try:
            return base64.b64encode(pair.sign(nonce.encode()))
        finally:
            pair.wipe()
