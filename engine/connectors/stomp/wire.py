"""The connection under a STOMP source or sink: `stomp.py`'s verbs on a wire that is read only when somebody asks.

`stomp.py` makes the frames of a session and sends heart-beats on a thread of its own; this transport takes the place
of its reader thread. Its own transport was no choice: over TLS it writes from the thread that delivers messages, so
that a waiting source would fall silent, and it does not notice when the broker hangs up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from stomp.connect import BaseConnection
from stomp.protocol import Protocol12
from stomp.transport import BaseTransport
from stomp.utils import Frame as StompFrame

from engine.connectors.base import NotConnectedError
from engine.connectors.wire import Endpoint, Wire

if TYPE_CHECKING:
    import ssl

    from engine.connectors.stomp.frames import Frame

__all__ = ["StompConnection", "endpoint"]

_PORTS = {"stomp": 61613, "stomp+ssl": 61612}


def endpoint(url: str) -> Endpoint:
    """Of `stomp://host:port` or `stomp+ssl://host:port`, as the configuration has checked it."""
    parts = urlsplit(url)
    port = parts.port or _PORTS[parts.scheme]
    return Endpoint(parts.scheme, parts.hostname or "127.0.0.1", port, parts.scheme != "stomp")


class StompConnection(Protocol12, BaseConnection):  # type: ignore[misc] # stomp.py has no types
    """One STOMP 1.2 connection: `stomp.py`'s verbs, this module's transport."""

    # stomp.py's own watch over the broker's heart-beats would find none while nobody reads, so it is put off for
    # good; `StompSession` watches when it reads.
    _NEVER = 1e5

    def __init__(self, endpoint: Endpoint, tls: ssl.SSLContext | None, timeout: float, heartbeat: float) -> None:
        """All in seconds: to wait for the connection, between heart-beats."""
        self.wire = _Transport(endpoint, tls, timeout)
        milliseconds = int(heartbeat * 1000)
        super().__init__(self.wire, (milliseconds, milliseconds), heart_beat_receive_scale=self._NEVER)

    def hear(self, frame: Frame) -> None:
        """Lets stomp.py know that it is connected: it starts heart-beats."""
        kind = frame.command.lower()
        self.wire.notify(kind, StompFrame(frame.command, dict(frame.headers), frame.body))


class _Transport(BaseTransport):  # type: ignore[misc] # stomp.py has no types
    """What stomp.py writes to; the session reads."""

    def __init__(self, endpoint: Endpoint, tls: ssl.SSLContext | None, timeout: float) -> None:
        super().__init__(auto_decode=False)
        self.vhost = endpoint.host
        self._endpoint = endpoint
        self._tls = tls
        self._timeout = timeout
        self._wire: Wire | None = None

    def start(self) -> None:
        """Connects; stomp.py's own would start its reader thread as well."""
        self.running = True
        self.attempt_connection()

    def attempt_connection(self) -> None:
        """Connects and makes TLS; NotConnectedError tells why it could not."""
        self._wire = Wire(self._endpoint, self._tls, self._timeout)
        self.current_host_and_port = (self._endpoint.host, self._endpoint.port)

    def send(self, encoded_frame: bytes) -> None:
        """Sends all of it; NotConnectedError if the broker is gone or takes nothing for long."""
        try:
            self._opened().send(encoded_frame)
        except NotConnectedError:
            self.set_connected(False)
            raise

    def read(self, timeout_seconds: float) -> bytes:
        """What has come, empty if nothing did in time; NotConnectedError if the broker has hung up."""
        try:
            return self._opened().read(timeout_seconds)
        except NotConnectedError:
            self.set_connected(False)
            raise

    def disconnect_socket(self) -> None:
        """Closes at once; the heart-beats end. For the thread that reads."""
        self.running = False
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.close()
        self.notify("disconnected")

    def _opened(self) -> Wire:
        if self._wire is None:
            msg = "not connected"
            raise NotConnectedError(msg)
        return self._wire
