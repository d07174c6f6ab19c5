"""Messages from a STOMP 1.2 broker: queues and topics of ActiveMQ Artemis, and of others that speak it.

Here are the steps of a session: connect, subscribe, receive, acknowledge, leave. Bytes become frames in
`stomp_frames`, frames become messages in `stomp_message`, sockets are in `stomp_wire`; `loop` does the rest.

Each message is acknowledged by itself (`client-individual`). A cumulative acknowledgement would be cheaper, but it
would include messages that the broker failed to put into a frame, such as Artemis a stream message: these would be
lost without ever having been seen.
"""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

import structlog

from engine.connectors.base import Delivery, NotConnectedError
from engine.connectors.stomp_frames import FrameError, FrameParser, escape
from engine.connectors.stomp_message import to_message
from engine.connectors.stomp_wire import Endpoint, StompConnection, tls_context
from engine.errors import HardFailureError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.connectors.stomp_frames import Frame
    from routes.model import Config, SourceConfig

__all__ = ["StompSource"]

_CONNECT_SECONDS = 10.0
_ANSWER_SECONDS = 30.0
_GOOD_BYE_SECONDS = 5.0
_REFUSED_SECONDS = 30.0
_KEPT_BYTES = 64 * 1024
_SILENT_BEATS = 3.0
_ROUTING = {"queue": "ANYCAST", "topic": "MULTICAST"}
_log = structlog.get_logger(__name__)


class StompSource:
    """A connection of its own to the broker, with a subscription for each destination."""

    def __init__(self, config: Config, source: SourceConfig, worker: int) -> None:
        """SetupError where a TLS file is no good."""
        self._source = source
        url = source.url or f"stomp://127.0.0.1:{config.embedded.stomp_port}"
        self._endpoint = Endpoint.parse(url)
        self._tls = tls_context(source) if self._endpoint.tls else None
        self._client_id = source.client_id or f"{config.bridge_id}.{source.name}"
        # A topic gives each of its subscribers everything, so only one worker listens to it.
        self._destinations = [name for name in source.destinations if worker == 1 or name.startswith("queue:")]
        self._max_body = config.journal.max_message_bytes
        self._connection: StompConnection | None = None
        self._parser = FrameParser(self._max_body, _KEPT_BYTES)
        self._frames: deque[Frame] = deque()
        self._kinds: dict[str, str] = {}
        self._artemis = False
        self._silence = 0.0
        self._heard = 0.0

    @property
    def address(self) -> str:
        """`stomp://host:port (queue:orders, …)`."""
        return f"{self._endpoint} ({', '.join(self._destinations) or 'nothing left for this worker'})"

    def connect(self) -> None:
        """Also logs in; a refused login is asked for again only after a while."""
        self.close()
        self._parser = FrameParser(self._max_body, _KEPT_BYTES)
        self._frames.clear()
        connection = StompConnection(self._endpoint, self._tls, _CONNECT_SECONDS, self._source.heartbeat_seconds)
        connection.wire.start()
        self._connection, self._heard, self._silence = connection, time.monotonic(), 0.0
        connection.connect(
            self._source.username,
            self._source.password,
            with_connect_command=True,
            headers={"client-id": self._client_id},
        )
        connected = self._await("CONNECTED", seconds=_CONNECT_SECONDS, back_off_seconds=_REFUSED_SECONDS)
        if (version := connected.headers.get("version")) != "1.2":
            msg = f"source '{self._source.name}': {self._endpoint} speaks STOMP {version or '1.0'}, 1.2 is needed"
            raise HardFailureError(msg)
        self._artemis = "Artemis" in connected.headers.get("server", "")
        self._silence = _promised_seconds(connected, self._source.heartbeat_seconds) * _SILENT_BEATS
        self._subscribe(connection)

    def receive(self, timeout_seconds: float) -> Delivery | None:
        """A message, with what was left of it if it was too large to keep."""
        frame = self._next(timeout_seconds)
        if frame is None or frame.command == "RECEIPT":
            return None
        if frame.command != "MESSAGE":
            raise self._refused(frame)
        token = frame.headers.get("ack")
        if token is None:
            raise self._lost("the broker sent a message without an ack header, which cannot be acknowledged")
        kind = self._kinds.get(frame.headers.get("subscription", ""), "queue")
        message = to_message(frame, kind, self._source.name, artemis=self._artemis)
        return Delivery(message, token, frame.size if frame.size > len(frame.body) else None)

    def acknowledge(self, tokens: Sequence[object]) -> None:
        """One frame for each, all in one write."""
        frames = "".join(f"ACK\nid:{escape(str(token))}\n\n\0" for token in tokens)
        self._opened().wire.send(frames.encode())

    def close(self) -> None:
        """Leaves in order, so that the broker has taken every acknowledgement before the connection ends."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        try:
            if connection.wire.is_connected():
                self._leave(connection)
        except NotConnectedError as error:
            _log.warning(
                "left without a good-bye", source=self._source.name, broker=str(self._endpoint), why=str(error)
            )
        finally:
            connection.wire.disconnect_socket()

    def _subscribe(self, connection: StompConnection) -> None:
        self._kinds = {}
        for number, destination in enumerate(self._destinations, 1):
            kind, _, name = destination.partition(":")
            headers = {
                "receipt": f"subscribed-{number}",
                # Artemis: the kind of address, and no limit to what is on its way; TCP limits it.
                "subscription-type": _ROUTING[kind],
                "consumer-window-size": "-1",
            }
            if self._source.selector:
                headers["selector"] = self._source.selector
            if self._source.subscription and kind == "topic":
                # The name belongs to one topic; that of Artemis, that of ActiveMQ.
                durable = f"{self._source.subscription}.{name}"
                headers |= {"durable-subscription-name": durable, "activemq.subscriptionName": durable}
            self._kinds[str(number)] = kind
            target = name if self._artemis else f"/{kind}/{name}"
            connection.subscribe(target, str(number), ack="client-individual", headers=headers)
            self._await("RECEIPT", headers["receipt"])

    def _leave(self, connection: StompConnection) -> None:
        self._frames.clear()
        self._connection = connection
        try:
            for number in self._kinds:
                connection.unsubscribe(number)
            connection.disconnect(receipt="bye")
            # Messages that are still on their way go back to where they came from.
            self._await("RECEIPT", "bye", seconds=_GOOD_BYE_SECONDS, keep=False)
        finally:
            self._connection = None

    def _await(
        self,
        command: str,
        receipt: str = "",
        *,
        seconds: float = _ANSWER_SECONDS,
        back_off_seconds: float | None = None,
        keep: bool = True,
    ) -> Frame:
        """The broker's answer; messages that come before it are kept for `receive`."""
        deadline = time.monotonic() + seconds
        messages: deque[Frame] = deque()
        while (left := deadline - time.monotonic()) > 0:
            frame = self._next(left)
            if frame is None:
                continue
            if frame.command == "ERROR":
                raise self._refused(frame, back_off_seconds)
            if frame.command == command and receipt in ("", frame.headers.get("receipt-id")):
                self._frames.extendleft(reversed(messages))
                return frame
            if frame.command == "MESSAGE" and keep:
                messages.append(frame)
        raise self._lost(f"the broker has not answered for {seconds:.0f} s; is this its STOMP port?")

    def _next(self, timeout_seconds: float) -> Frame | None:
        if not self._frames:
            self._read(timeout_seconds)
        if not self._frames:
            return None
        frame = self._frames.popleft()
        if frame.command != "MESSAGE" and self._connection:
            self._connection.hear(frame)
        return frame

    def _read(self, timeout_seconds: float) -> None:
        data = self._opened().wire.read(timeout_seconds)
        now = time.monotonic()
        if data:
            self._heard = now
            try:
                self._frames.extend(self._parser.feed(data))
            except FrameError as error:
                raise self._lost(f"the broker sent {error}") from error
        elif self._silence and now - self._heard > self._silence:
            raise self._lost(f"the broker has been silent for {now - self._heard:.0f} s, in spite of heart-beats")

    def _refused(self, frame: Frame, back_off_seconds: float | None = None) -> NotConnectedError:
        """After an ERROR the broker hangs up (STOMP 1.2, ERROR)."""
        said = frame.headers.get("message") or frame.body.decode("utf-8", "replace")
        return self._lost(f"the broker says: {' '.join(said.split())[:500]}", back_off_seconds)

    def _lost(self, why: str, back_off_seconds: float | None = None) -> NotConnectedError:
        if self._connection:
            self._connection.wire.disconnect_socket()
        return NotConnectedError(why, back_off_seconds)

    def _opened(self) -> StompConnection:
        if self._connection is None:
            msg = "not connected"
            raise NotConnectedError(msg)
        return self._connection


def _promised_seconds(connected: Frame, wanted_seconds: float) -> float:
    """How often the broker will show that it is alive; 0 if it will not."""
    beats = connected.headers.get("heart-beat", "0,0").partition(",")[0].strip()
    offered = int(beats) / 1000 if beats.isdecimal() else 0.0
    return max(offered, wanted_seconds) if offered else 0.0
