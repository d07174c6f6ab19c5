"""A plain STOMP 1.2 client for people: `send` with a receipt, `receive` message by message.

The bridge's own source is in `engine.connectors`; this one shows what any client of the broker would see.
"""

from __future__ import annotations

import logging
import queue
import ssl
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import stomp
from stomp.exception import StompException

from engine.cli.records import Item
from engine.errors import HardFailureError, UnreachableError, UsageError
from engine.message import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from routes.model import SourceConfig

__all__ = ["received", "send"]

_PORTS = {"stomp": 61613, "stomp+ssl": 61612, "stomps": 61612}
_SECONDS = 10.0
_QUIET_SECONDS = 1.0
_HEARTBEAT_MS = 10_000
_ROUTING = {"queue": "ANYCAST", "topic": "MULTICAST"}


def send(
    source: SourceConfig, destination: str, bodies: Iterable[bytes], *, text: bool, headers: Mapping[str, str]
) -> int:
    """Send each body as one message and wait until the broker has them all; their number.

    Raises:
        UnreachableError: the broker does not answer.
        HardFailureError: it refuses.
    """
    with _session(source) as session:
        for body in bodies:
            session.send(destination, body, text=text, headers=headers)


def received(source: SourceConfig, destination: str, most: int | None, seconds: float | None) -> Iterator[Item]:
    """Take messages off a queue, or listen to a topic, until none comes; for ever if `seconds` is None.

    A message is acknowledged once the caller asks for the next one.
    """
    with _session(source) as session:
        session.subscribe(destination)
        wait = seconds
        for number in count(1):
            frame = session.next(wait)
            if frame is None:
                return
            yield _item(destination, frame)
            session.acknowledge(frame)
            if number == most:
                return
            if most is None and wait is not None:
                wait = min(wait, _QUIET_SECONDS)


class _Session(stomp.ConnectionListener):
    """One connection. Frames arrive on a thread of stomp.py and wait in a queue until they are asked for."""

    def __init__(self, source: SourceConfig) -> None:
        assert source.url is not None
        self._url = source.url
        self._frames: queue.Queue[tuple[str, stomp.utils.Frame | None]] = queue.Queue()
        # Refused connections are told once, by the error raised here.
        logging.getLogger("stomp.py").setLevel(logging.CRITICAL)
        host, port, tls = _address(source.url)
        self._connection = stomp.StompConnection12(
            [(host, port)],
            reconnect_attempts_max=1,
            timeout=_SECONDS,
            heartbeats=(_HEARTBEAT_MS, _HEARTBEAT_MS),
            auto_decode=False,
            auto_content_length=False,
            vhost=host,
        )
        if tls:
            self._secure(host, port, source)
        self._connection.set_listener("session", self)
        try:
            self._connection.connect(source.username, source.password, wait=False)
        except (StompException, OSError) as error:
            raise self._gone() from error
        self._expect("connected")

    def subscribe(self, destination: str) -> None:
        scheme, _, name = destination.partition(":")
        self._connection.subscribe(
            name,
            id="1",
            ack="client-individual",
            headers={"subscription-type": _ROUTING[scheme], "receipt": "subscribed"},
        )
        self._expect("receipt")

    def send(self, destination: str, body: bytes, *, text: bool, headers: Mapping[str, str]) -> None:
        scheme, _, name = destination.partition(":")
        fields = {**headers, "destination-type": _ROUTING[scheme]}
        if not text:
            # With a length Artemis makes a bytes message of it, without one a text message.
            fields["content-length"] = str(len(body))
        try:
            self._connection.send(name, body, headers=fields)
        except (StompException, OSError) as error:
            raise self._gone() from error

    def next(self, seconds: float | None) -> stomp.utils.Frame | None:
        """The next message; None if none came in time."""
        try:
            kind, frame = self._frames.get(timeout=seconds)
        except queue.Empty:
            return None
        self._check(kind, frame)
        return frame

    def acknowledge(self, frame: stomp.utils.Frame) -> None:
        self._connection.ack(frame.headers["ack"])

    def close(self) -> None:
        """Waits until the broker has taken everything sent so far."""
        if not self._connection.is_connected():
            raise self._gone()
        self._connection.disconnect(receipt="last")
        self._expect("receipt")

    def abandon(self) -> None:
        self._connection.transport.stop()

    def on_connected(self, frame: stomp.utils.Frame) -> None:
        self._frames.put(("connected", frame))

    def on_message(self, frame: stomp.utils.Frame) -> None:
        self._frames.put(("message", frame))

    def on_receipt(self, frame: stomp.utils.Frame) -> None:
        self._frames.put(("receipt", frame))

    def on_error(self, frame: stomp.utils.Frame) -> None:
        self._frames.put(("error", frame))

    def on_disconnected(self) -> None:
        self._frames.put(("disconnected", None))

    def _expect(self, wanted: str) -> None:
        """Waits for one kind of frame; messages that come before it stay unacknowledged and go back to the queue."""
        while True:
            try:
                kind, frame = self._frames.get(timeout=_SECONDS)
            except queue.Empty:
                raise self._gone() from None
            if kind == wanted:
                return
            self._check(kind, frame)

    def _check(self, kind: str, frame: stomp.utils.Frame | None) -> None:
        if kind == "error" and frame is not None:
            said = frame.headers.get("message") or bytes(frame.body or b"").decode("utf-8", "replace").strip()
            msg = f"{self._url} refuses: {said}"
            raise HardFailureError(msg)
        if kind == "disconnected":
            raise self._gone()

    def _gone(self) -> UnreachableError:
        return UnreachableError(f"{self._url} does not answer; is the broker running, and is this its STOMP port?")

    def _secure(self, host: str, port: int, source: SourceConfig) -> None:
        self._connection.set_ssl(
            [(host, port)],
            ca_certs=None if source.tls_ca is None else str(source.tls_ca),
            cert_file=None if source.tls_certificate is None else str(source.tls_certificate),
            key_file=None if source.tls_key is None else str(source.tls_key),
            ssl_version=ssl.PROTOCOL_TLS_CLIENT,
        )


@contextmanager
def _session(source: SourceConfig) -> Iterator[_Session]:
    session = _Session(source)
    try:
        yield session
        session.close()
    finally:
        session.abandon()


def _item(destination: str, frame: stomp.utils.Frame) -> Item:
    headers = tuple((name, value.encode()) for name, value in frame.headers.items())
    record = Record(None, frame.body.encode() if isinstance(frame.body, str) else frame.body, headers)
    return Item(f"{destination}  message {frame.headers.get('message-id', '')}", {"destination": destination}, record)


def _address(url: str) -> tuple[str, int, bool]:
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = 0
    if parts.scheme not in _PORTS or not parts.hostname or port == 0:
        msg = f"{url!r} is no STOMP address: expected stomp://HOST:PORT or stomp+ssl://HOST:PORT"
        raise UsageError(msg)
    return parts.hostname, port or _PORTS[parts.scheme], parts.scheme != "stomp"
