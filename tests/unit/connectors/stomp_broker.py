"""A STOMP broker for tests that says what a test wants it to say, and a source that is connected to it."""

from __future__ import annotations

import socket
import struct
import threading
import time
from typing import TYPE_CHECKING

import pytest

from engine.connectors.endpoint import SystemEndpoint
from engine.connectors.stomp.source import StompSource
from engine.connectors.system import connector
from routes.config import loads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


class Broker:
    """Answers CONNECT, then each SUBSCRIBE with its receipt and with the frames given."""

    def __init__(self, server: str, frames: Sequence[bytes] = (), *, hangs_up: bool = False) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._server, self._frames, self._hangs_up = server, frames, hangs_up
        self.heard = b""
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        connection, _ = self._listener.accept()
        with connection:
            connection.sendall(f"CONNECTED\nversion:1.2\nheart-beat:0,0\nserver:{self._server}\n\n\0".encode())
            subscribed = False
            while data := connection.recv(65536):
                self.heard += data
                if not subscribed and b"SUBSCRIBE" in self.heard:
                    subscribed = True
                    connection.sendall(b"RECEIPT\nreceipt-id:subscribed-1\n\n\0" + b"".join(self._frames))
                    if self._hangs_up:
                        # A reset may overtake what is not sent yet.
                        time.sleep(0.2)
                        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        return
                if b"DISCONNECT" in self.heard:
                    connection.sendall(b"RECEIPT\nreceipt-id:bye\n\n\0")
                    return

    def subscription(self) -> dict[str, str]:
        """Headers of the SUBSCRIBE."""
        text = self.heard.partition(b"SUBSCRIBE\n")[2].partition(b"\n\n")[0].decode()
        return dict(line.replace("\\c", ":").split(":", 1) for line in text.splitlines())

    def close(self) -> None:
        self._listener.close()
        self._thread.join(10)


@pytest.fixture
def opened() -> Iterator[Callable[..., tuple[StompSource, Broker]]]:
    made: list[tuple[StompSource, Broker]] = []

    def make(
        server: str, *settings: str, frames: Sequence[bytes] = (), hangs_up: bool = False
    ) -> tuple[StompSource, Broker]:
        broker = Broker(server, frames, hangs_up=hangs_up)
        lines = [f"source.s.{each}" for each in (f"url=stomp://127.0.0.1:{broker.port}", "type=stomp", *settings)]
        if not any("destinations" in each for each in settings):
            lines.append("source.s.destinations=queue:a")
        config = loads("\n".join(("bridge.id=b", "routes.a.in.include=TRUE", "routes.a.out.topic=o", *lines)))
        source = connector(config.sources[0].type).make_source(SystemEndpoint.of(config, config.sources[0]), 1)
        assert isinstance(source, StompSource)
        made.append((source, broker))
        source.connect()
        return made[-1]

    yield make
    for source, broker in made:
        source.close()
        broker.close()
