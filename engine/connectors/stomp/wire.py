"""Connection of a STOMP source or sink: the commands of `stomp.py` on a transport that reads only when asked.

`stomp.py` writes the frames of a session and sends heart-beats on a thread of its own. The transport here replaces its
reader thread. The transport of `stomp.py` is unsuitable: over TLS it writes from the thread that delivers messages, so
that a waiting source would send no heart-beats, and it does not notice when the broker closes the connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from stomp import utils
from stomp.connect import BaseConnection
from stomp.protocol import Protocol12
from stomp.transport import BaseTransport

from engine.connectors.base import NotConnectedError
from engine.connectors.wire import Endpoint, Wire

if TYPE_CHECKING:
    import ssl

    from engine.connectors.stomp.frames import StompFrame

__all__ = ["StompConnection", "endpoint"]

_PORTS = {"stomp": 61613, "stomp+ssl": 61612}


def endpoint(url: str) -> Endpoint:
    """Returns the endpoint of `stomp://host:port` or `stomp+ssl://host:port`, a URL checked by the configuration."""
    parts = urlsplit(url)
    port = parts.port or _PORTS[parts.scheme]
    return Endpoint(parts.scheme, parts.hostname or "127.0.0.1", port, parts.scheme != "stomp")


class StompConnection(Protocol12, BaseConnection):  # type: ignore[misc] # stomp.py has no types
    """STOMP 1.2 connection with the commands of `stomp.py` and the transport of this module."""

    # stomp.py's own check of the broker's heart-beats would find none while nothing is read, so this scale postpones it
    # indefinitely; `StompSession` checks them when it reads.
    _NEVER = 1e5

    def __init__(self, endpoint: Endpoint, tls: ssl.SSLContext | None, timeout: float, heartbeat: float) -> None:
        """Creates the connection without connecting.

        `timeout` is the time limit for connecting, `heartbeat` the interval between heart-beats, both in seconds.
        """
        self.wire = _Transport(endpoint, tls, timeout)
        milliseconds = int(heartbeat * 1000)
        super().__init__(self.wire, (milliseconds, milliseconds), heart_beat_receive_scale=self._NEVER)

    def hear(self, connected: StompFrame, beats: tuple[int, int]) -> None:
        """Passes CONNECTED to stomp.py, which starts its heart-beats.

        `beats` are the intervals of the broker in milliseconds, which take the place of the header: stomp.py does not
        check it.
        """
        headers = {**connected.headers, "heart-beat": f"{beats[0]},{beats[1]}"}
        self.wire.notify("connected", utils.Frame(connected.command, headers, connected.body))


class _Transport(BaseTransport):  # type: ignore[misc] # stomp.py has no types
    """Transport to which stomp.py writes, and from which `StompSession` reads."""

    def __init__(self, endpoint: Endpoint, tls: ssl.SSLContext | None, timeout: float) -> None:
        super().__init__(auto_decode=False)
        self.vhost = endpoint.host
        self._endpoint = endpoint
        self._tls = tls
        self._timeout = timeout
        self._wire: Wire | None = None

    def start(self) -> None:
        """Connects; overrides the method of stomp.py, which would also start its reader thread."""
        self.running = True
        self.attempt_connection()

    def attempt_connection(self) -> None:
        """Connects and does the TLS handshake.

        Raises:
            NotConnectedError: the reason why it failed.
        """
        self._wire = Wire(self._endpoint, self._tls, self._timeout)
        self.current_host_and_port = (self._endpoint.host, self._endpoint.port)

    def send(self, encoded_frame: bytes) -> None:
        """Sends all bytes.

        Raises:
            NotConnectedError: the connection is lost, or the broker has taken nothing for too long.
        """
        try:
            self._opened().send(encoded_frame)
        except NotConnectedError:
            self.set_connected(False)
            raise

    def read(self, timeout_seconds: float) -> bytes:
        """Returns received bytes; empty if none came in time.

        Raises:
            NotConnectedError: the broker has closed the connection.
        """
        try:
            return self._opened().read(timeout_seconds)
        except NotConnectedError:
            self.set_connected(False)
            raise

    def disconnect_socket(self) -> None:
        """Closes the socket at once and ends the heart-beats; to be called by the thread that reads."""
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
