"""A TCP proxy between a source or a sink and its broker, whose ways can be made slow, silent, short or cut."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress


class Proxy:
    """Listens on `port` and forwards to the broker's."""

    def __init__(self, target_port: int, port: int = 0, host: str = "127.0.0.1") -> None:
        """`port` is any that is free if 0; `host` is where it listens."""
        self.target_port = target_port
        self._listener = socket.create_server((host, port))
        self.port: int = self._listener.getsockname()[1]
        self.piece_bytes = 1 << 16
        self.pause_seconds = 0.0
        """After each piece to the source."""
        self.pause_up_seconds = 0.0
        """After each piece to the broker."""
        self.refuses = False
        """Whether who connects is hung up on."""
        self._left: int | None = None
        self._is_cut_off = False
        self._flows = threading.Event()
        self._flows.set()
        self._sockets: list[socket.socket] = []
        self._lock = threading.Lock()
        self._is_closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """From now on nobody gets through, in either direction."""
        self._flows.set()
        with suppress(OSError):
            # Else the thread that accepts would do so once more.
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            self._is_closed = True
        self.cut()

    def silence(self, *, both_ways: bool = False) -> None:
        """From now on nothing comes from the broker, and nobody hangs up; for connections made until `resume`.

        With `both_ways` nothing reaches the broker either.
        """
        self._is_cut_off = both_ways
        self._flows.clear()

    def resume(self) -> None:
        """New connections work."""
        self._flows = threading.Event()
        self._flows.set()

    def cut_after(self, count: int) -> None:
        """Once so many more bytes have passed, in both directions taken together, all connections end there."""
        self._left = count

    def cut(self) -> None:
        """Ends the connections there are."""
        with self._lock:
            sockets, self._sockets = self._sockets, []
        for each in sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                source, _ = self._listener.accept()
                if self.refuses:
                    source.close()
                    continue
                try:
                    broker = socket.create_connection(("127.0.0.1", self.target_port))
                except OSError:
                    source.close()
                    continue
                with self._lock:
                    self._sockets += [source, broker]
                if self._is_closed:
                    self.cut()
                threading.Thread(target=self._forward, args=(source, broker, False), daemon=True).start()
                threading.Thread(target=self._forward, args=(broker, source, True), daemon=True).start()

    def _forward(self, origin: socket.socket, to: socket.socket, down: bool) -> None:
        flows = self._flows
        with suppress(OSError):
            while data := origin.recv(self.piece_bytes if down or self.pause_up_seconds else 1 << 16):
                if down or self._is_cut_off:
                    flows.wait()
                time.sleep(self.pause_seconds if down else self.pause_up_seconds)
                if self._left is not None:
                    data, self._left = data[: self._left], self._left - len(data)
                    if self._left <= 0:
                        to.sendall(data)
                        self._left = None
                        self.cut()
                        break
                to.sendall(data)
        for each in (origin, to):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
