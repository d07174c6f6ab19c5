"""A proxy in front of a Kafka that answers the ends of transactions late, as a broker with slow replicas does."""

from __future__ import annotations

import socket
import struct
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from engine.embedded import EmbeddedKafka

if TYPE_CHECKING:
    from pathlib import Path

_END_TXN = 26
"""Kafka's key of the request that ends a transaction, `EndTxn` of its protocol."""


class KafkaBehindProxy(EmbeddedKafka):
    """A Kafka whose clients come through a proxy on `proxy_port`."""

    def __init__(self, data: Path, port: int, jars: Path, proxy_port: int) -> None:
        super().__init__(data, port, jars)
        self._proxy_port = proxy_port

    def _properties(self, controller_port: int) -> dict[str, str]:
        proxy = f"PLAINTEXT://127.0.0.1:{self._proxy_port}"
        return super()._properties(controller_port) | {"advertised.listeners": proxy}


class SlowCommits:
    """Listens on a port of its own and forwards to Kafka's."""

    def __init__(self, target_port: int) -> None:
        self.seconds = 0.0
        """Time by which each answer to the end of a transaction is late."""
        self.commits = 0
        """Number of these answers so far."""
        self.target_port = target_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    broker = socket.create_connection(("127.0.0.1", self.target_port))
                except OSError:
                    client.close()
                    continue
                ends: set[int] = set()
                for origin, to, is_answer in ((client, broker, False), (broker, client, True)):
                    threading.Thread(target=self._forward, args=(origin, to, ends, is_answer), daemon=True).start()

    def _forward(self, origin: socket.socket, to: socket.socket, ends: set[int], is_answer: bool) -> None:
        with suppress(OSError, EOFError), origin.makefile("rb") as frames:
            while True:
                size = frames.read(4)
                frame = frames.read(*struct.unpack(">i", size)) if len(size) == 4 else b""
                if not frame:
                    break
                if is_answer:
                    (number,) = struct.unpack_from(">i", frame)
                    if number in ends:
                        ends.discard(number)
                        self.commits += 1
                        time.sleep(self.seconds)
                else:
                    key, _, number = struct.unpack_from(">hhi", frame)
                    if key == _END_TXN:
                        ends.add(number)
                to.sendall(size + frame)
        for each in (origin, to):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
