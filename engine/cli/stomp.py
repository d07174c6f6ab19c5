"""`send` and `receive` at a JMS broker, over STOMP 1.2: an ordinary client with the source's wire underneath."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from engine.cli.records import Item
from engine.connectors.base import NotConnectedError
from engine.connectors.stomp import StompSource
from engine.connectors.stomp_frames import FrameError, FrameParser
from engine.connectors.stomp_wire import Endpoint, StompConnection, tls_context
from engine.errors import HardFailureError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from engine.connectors.base import Delivery
    from routes.model import Config, SourceConfig

__all__ = ["received", "send"]

_SECONDS = 10.0
_ANSWER_BYTES = 64 * 1024
_QUIET_SECONDS = 1.0
_POLL_SECONDS = 0.2
_ROUTING = {"queue": "ANYCAST", "topic": "MULTICAST"}


def send(
    source: SourceConfig, destination: str, bodies: Iterable[bytes], *, text: bool, headers: Mapping[str, str]
) -> None:
    """Send each body as one message and wait until the broker has them all.

    Raises:
        UnreachableError: the broker does not answer.
        HardFailureError: it refuses.
    """
    scheme, _, name = destination.partition(":")
    with _told(source), _Sender(source).session() as sender:
        target = name if sender.artemis else f"/{scheme}/{name}"
        for body in bodies:
            fields = {**headers, "destination-type": _ROUTING[scheme]}
            if not text:
                # With a length the broker makes a bytes message of it, without one a text message.
                fields["content-length"] = str(len(body))
            sender.connection.send(target, body, headers=fields)


def received(
    config: Config, source: SourceConfig, destination: str, most: int | None, seconds: float | None
) -> Iterator[Item]:
    """Take messages off a queue, or listen to a topic, until none comes; for ever if `seconds` is None.

    A message is acknowledged once the caller asks for the next one.
    """
    own = replace(
        source,
        destinations=(destination,),
        workers=1,
        selector=None,
        subscription=None,
        client_id=f"jms-bridge-receive-{os.getpid()}",
    )
    reader = StompSource(config, own, 1)
    try:
        with _told(source):
            reader.connect()
            wait = seconds
            for number in count(1):
                delivery = _next(reader, wait)
                if delivery is None:
                    return
                yield Item(destination, {"destination": destination}, delivery.message.to_record())
                reader.acknowledge([delivery.token])
                if number == most:
                    return
                if most is None and wait is not None:
                    wait = min(wait, _QUIET_SECONDS)
    finally:
        reader.close()


def _next(reader: StompSource, seconds: float | None) -> Delivery | None:
    deadline = None if seconds is None else time.monotonic() + seconds
    while True:
        if (delivery := reader.receive(_POLL_SECONDS)) is not None:
            return delivery
        if deadline is not None and time.monotonic() >= deadline:
            return None


class _Sender:
    """A connection that only sends; the broker's answers are read when they are waited for."""

    def __init__(self, source: SourceConfig) -> None:
        assert source.url is not None
        endpoint = Endpoint.parse(source.url)
        tls = tls_context(source) if endpoint.tls else None
        self._source = source
        self._parser = FrameParser(_ANSWER_BYTES, _ANSWER_BYTES)
        self.connection = StompConnection(endpoint, tls, _SECONDS, source.heartbeat_seconds)
        self.connection.auto_content_length = False
        self.artemis = False

    @contextmanager
    def session(self) -> Iterator[_Sender]:
        """Connected; at the end the broker has taken everything."""
        self.connection.wire.start()
        try:
            self.connection.connect(self._source.username, self._source.password, with_connect_command=True)
            self.artemis = "Artemis" in self._await("CONNECTED").get("server", "")
            yield self
            self.connection.disconnect(receipt="last")
            self._await("RECEIPT")
        finally:
            self.connection.wire.disconnect_socket()

    def _await(self, command: str) -> Mapping[str, str]:
        """The headers of the broker's answer."""
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline:
            for frame in self._parser.feed(self.connection.wire.read(_POLL_SECONDS)):
                self.connection.hear(frame)
                if frame.command == "ERROR":
                    said = frame.headers.get("message") or frame.body.decode("utf-8", "replace").strip()
                    msg = f"{self._source.url} refuses: {said}"
                    raise HardFailureError(msg)
                if frame.command == command:
                    return frame.headers
        msg = f"it has not answered for {_SECONDS:.0f} s"
        raise NotConnectedError(msg)


@contextmanager
def _told(source: SourceConfig) -> Iterator[None]:
    """Errors of the wire as errors for people."""
    try:
        yield
    except (NotConnectedError, FrameError) as error:
        msg = f"{source.url} does not answer ({error}); is the broker running, and is this its STOMP port?"
        raise UnreachableError(msg) from error
