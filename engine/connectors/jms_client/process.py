"""The child process that runs a provider's client: its start, its frames, its log and its end.

A process that dies, hangs or runs out of memory is a connection that broke. The frames are described in
docs/adr/0023-jms.md; `jvm/jms` is the other side.
"""

from __future__ import annotations

import fcntl
import os
import select
import struct
import subprocess
import time
from contextlib import suppress
from functools import cache
from threading import Thread
from typing import IO, TYPE_CHECKING, NamedTuple

import structlog

from engine.connectors.base import NotConnectedError
from engine.connectors.jms import client_id_of
from engine.connectors.jms_client.class_path import files, resolve
from engine.connectors.jms_client.providers import provider_of
from engine.connectors.jms_client.settings import JNDI_NAME
from engine.errors import HardFailureError, SetupError
from engine.jars import HALLMARKS, jars
from engine.java import find_java

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.connectors.endpoint import SystemEndpoint
    from engine.connectors.jms_client.settings import JmsClientConfig

__all__ = ["ClientProcess", "Frame", "connection_settings", "texts", "texts_at"]

_MAIN = "jmsbridge.jms.Main"
_HEAD = struct.Struct(">IB")
_CONNECT_SECONDS = 60.0
_SILENT_SECONDS = 30.0
_CLOSE_SECONDS = 15.0
_LOGIN_SECONDS = 30.0
"""Shortest wait before the next attempt after a refused login, or a client that cannot work with its jars."""
_READ_BYTES = 1 << 20
_PIPE_BYTES = 1 << 20
"""Size of each pipe: a batch of ordinary messages fits, so that neither process waits for the other to read."""
_MOST_FRAME_BYTES = 1 << 30
_LINE_CHARS = 1000
_MOST_LINES = 200
"""Lines of the client's log that are taken over in a minute."""
_NOTE = "NOTE: Picked up JDK_JAVA_OPTIONS"
_SETTINGS, _CLOSE = ord("C"), ord("X")
_READY, _FAILED, _ALIVE, _END = ord("R"), ord("F"), ord("P"), ord("E")
_AGAIN = ("lost", "unreadable")
"""Kinds of failures after which the pauses between attempts grow from the shortest on."""
_CLOSED = (
    "-Dcom.sun.jndi.rmi.object.trustURLCodebase=false",
    "-Dcom.sun.jndi.ldap.object.trustURLCodebase=false",
    "-Dcom.sun.jndi.cosnaming.object.trustURLCodebase=false",
    "-Dcom.sun.jndi.ldap.object.trustSerialData=false",
    "-Djdk.jndi.rmi.object.factoriesFilter=java.naming/com.sun.jndi.rmi.**;!*",
    "-Djdk.jndi.ldap.object.factoriesFilter=java.naming/com.sun.jndi.ldap.**;!*",
)
"""Options that keep JNDI from loading classes from elsewhere."""
_log = structlog.get_logger(__name__)
_java = cache(find_java)


class Frame(NamedTuple):
    """Frame from the child process."""

    kind: int
    """Character code of the letter of its kind."""
    content: bytes


def texts(values: Sequence[str]) -> bytes:
    """Encodes a block of texts."""
    encoded = [value.encode("utf-8", "replace") for value in values]
    return struct.pack(f">{len(encoded) + 1}I", len(encoded), *map(len, encoded)) + b"".join(encoded)


def texts_at(data: bytes, offset: int) -> tuple[list[str], int]:
    """Decodes the block of texts at a place; returns the texts and the place behind them."""
    (count,) = struct.unpack_from(">I", data, offset)
    lengths = struct.unpack_from(f">{count}I", data, offset + 4)
    offset += 4 + 4 * count
    texts = []
    for length in lengths:
        texts.append(data[offset : offset + length].decode("utf-8", "replace"))
        offset += length
    return texts, offset


def connection_settings(broker: JmsClientConfig, worker: int = 1) -> dict[str, str]:
    """Returns the settings of a worker's connection, secrets included, as the first frame carries them."""
    given = {
        "factory": broker.factory,
        "jndi-name": broker.jndi.get(JNDI_NAME),
        "jndi-destinations": "true" if broker.jndi_destinations else "false",
        "username": broker.username,
        "password": broker.password,
        "client-id": broker.client_id and client_id_of(broker.client_id, worker),
        "deserialized": broker.deserialized or provider_of(broker).deserialized,
        "system.javax.net.ssl.trustStore": str(broker.trust_store or "") or None,
        "system.javax.net.ssl.trustStorePassword": broker.trust_store_password,
        "system.javax.net.ssl.keyStore": str(broker.key_store or "") or None,
        "system.javax.net.ssl.keyStorePassword": broker.key_store_password,
    }
    given |= {f"property.{name}": text for name, text in broker.properties.items()}
    given |= {f"jndi.{name}": text for name, text in broker.jndi.items() if name != JNDI_NAME}
    return {name: text for name, text in given.items() if text is not None}


class ClientProcess:
    """Child process of one connection; for one thread, and started again for each connection."""

    def __init__(self, endpoint: SystemEndpoint[JmsClientConfig]) -> None:
        self._endpoint = endpoint
        self._broker = endpoint.settings
        self._process: subprocess.Popen[bytes] | None = None
        self._in = self._out = -1
        self._received = bytearray()
        self._frames: list[Frame] = []
        self._heard = 0.0
        self._log_lines: list[str] = []
        self._reader: Thread | None = None
        self._is_connected = False
        self.provider = ""
        """Name and version of the provider that is connected, and the version of JMS; empty if it does not tell."""

    def start(self, settings: Mapping[str, str]) -> None:
        """Starts the process and connects.

        Raises:
            NotConnectedError: the provider cannot be reached or refuses the login.
            SetupError: there is no Java, or a jar is missing.
            HardFailureError: no attempt can succeed with these settings.
        """
        self.close()
        self._is_connected = False
        self._launch()
        pairs = [text for pair in settings.items() for text in pair]
        self.write(_SETTINGS, texts(pairs))
        deadline = time.monotonic() + _CONNECT_SECONDS
        while (left := deadline - time.monotonic()) > 0:
            if (frame := self.next(min(left, 1.0))) is None:
                continue
            if frame.kind == _READY:
                self._is_connected = True
                self.provider = " ".join(filter(None, texts_at(frame.content, 0)[0][:2]))
                return
        raise self._lost(f"the client has not connected in {_CONNECT_SECONDS:.0f} seconds")

    def next(self, timeout_seconds: float) -> Frame | None:
        """Returns the next frame; None if none arrives in time.

        Raises:
            NotConnectedError: the process has ended, hangs, or reports that the connection is lost.
            HardFailureError: it reports, before it has connected, that no attempt can succeed.
        """
        if not self._frames:
            self._read(timeout_seconds)
        if not self._frames:
            if time.monotonic() - self._heard > _SILENT_SECONDS:
                raise self._lost("the process of the client does not answer")
            return None
        frame = self._frames.pop(0)
        if frame.kind == _FAILED:
            raise self._failure(*texts_at(frame.content, 0)[0])
        return frame

    def write(self, kind: int, content: bytes) -> None:
        """Writes a frame.

        Raises:
            NotConnectedError: the process has ended, with the reason that it gave, or takes nothing.
            HardFailureError: it has ended before it has connected, and no attempt can succeed.
        """
        data = memoryview(_HEAD.pack(len(content), kind) + content)
        deadline = time.monotonic() + _CONNECT_SECONDS + _SILENT_SECONDS
        while data:
            try:
                data = data[os.write(self._in, data) :]
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise self._lost("the process of the client takes nothing any more") from None
                # It may be waiting until its own frames are read.
                self._await({self._out: select.POLLIN, self._in: select.POLLOUT}, 1.0)
                self._read(0)
            except OSError:
                raise self._ended() from None

    def close(self) -> None:
        """Ends the connection in order, and the process; never raises, may be called at any time."""
        if (process := self._process) is None:
            return
        with suppress(NotConnectedError, HardFailureError):
            self.write(_CLOSE, b"")
            deadline = time.monotonic() + _CLOSE_SECONDS
            while time.monotonic() < deadline and self._after_close() is not True:
                continue
        self._end(process)

    def _after_close(self) -> bool:
        """Reads on after the request to close; returns True behind the last frame."""
        frame = self.next(0.2)
        return frame is not None and frame.kind == _END

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        self._process = None
        for descriptor in (self._in, self._out):
            os.close(descriptor)
        if process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(1)
        process.kill()
        process.wait()
        if self._reader is not None:
            self._reader.join(2)
        self._received.clear()
        self._frames.clear()

    def _launch(self) -> None:
        broker = self._broker
        folder = jars().absolute() / "jms"
        if not (folder / HALLMARKS["jms"]).exists():
            raise SetupError(f"no {HALLMARKS['jms']} in {folder}: run make setup")
        path = [*sorted(folder.glob("*.jar")), *files(broker.class_path)]
        path += resolve(self._endpoint.data, broker.packages)
        java = str(_java())
        read, written = os.pipe()
        command = [
            java,
            f"-Xmx{broker.heap_bytes >> 10}k",
            "-XX:+UseSerialGC",
            "-XX:+ExitOnOutOfMemoryError",
            *_CLOSED,
            "-cp",
            os.pathsep.join(map(str, path)),
            _MAIN,
            f"/dev/fd/{written}",
        ]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(written,),
                # A signal of the terminal is for the worker, which ends the connection in order.
                start_new_session=True,
            )
        except OSError as error:
            os.close(read)
            raise SetupError(f"Java does not start: {error}") from error
        finally:
            os.close(written)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = os.dup(self._process.stdin.fileno()), read
        self._process.stdin.close()
        for descriptor in (self._in, self._out):
            os.set_blocking(descriptor, False)
            # Beyond what the kernel allows a user in all, pipes keep their small size.
            with suppress(PermissionError):
                fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self._log_lines = []
        self._reader = Thread(target=self._follow, args=(self._process.stdout, self._log_lines), daemon=True)
        self._reader.start()
        self._heard = time.monotonic()
        self.provider = ""

    @staticmethod
    def _await(events: Mapping[int, int], timeout_seconds: float) -> None:
        """Waits for one of the events, by descriptor; of any number, unlike `select`, which takes none above 1,023."""
        poll = select.poll()
        for descriptor, event in events.items():
            poll.register(descriptor, event)
        poll.poll(timeout_seconds * 1000)

    def _read(self, timeout_seconds: float) -> None:
        """Takes the frames that are there, and waits up to `timeout_seconds` for the first bytes."""
        if timeout_seconds > 0:
            self._await({self._out: select.POLLIN}, timeout_seconds)
        try:
            data = os.read(self._out, _READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            raise self._ended() from None
        if not data:
            raise self._ended()
        self._heard = time.monotonic()
        self._take(data)

    def _take(self, data: bytes) -> None:
        """Takes bytes of the process, and keeps the frames that are complete."""
        self._received += data
        offset = 0
        while len(self._received) - offset >= _HEAD.size:
            length, kind = _HEAD.unpack_from(self._received, offset)
            if length > _MOST_FRAME_BYTES:
                raise self._lost("the process of the client sends bytes that are not a frame")
            if len(self._received) - offset < _HEAD.size + length:
                break
            begin = offset + _HEAD.size
            offset = begin + length
            if kind != _ALIVE:
                self._frames.append(Frame(kind, bytes(self._received[begin:offset])))
        del self._received[:offset]

    def _failure(self, kind: str, why: str) -> NotConnectedError | HardFailureError:
        why = self._masked(why)
        if kind == "refused" and not self._is_connected:
            return HardFailureError(f"'{self._broker.name}' of type jms: {why}")
        return NotConnectedError(why, None if kind in _AGAIN else _LOGIN_SECONDS)

    def _ended(self) -> NotConnectedError | HardFailureError:
        """Error for a process that has closed its pipe: the reason that it gave, else how it ended."""
        with suppress(OSError):
            while data := os.read(self._out, _READ_BYTES):
                self._take(data)
        if last_words := next((each for each in self._frames if each.kind == _FAILED), None):
            return self._failure(*texts_at(last_words.content, 0)[0])
        assert self._process is not None
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(2)
        code = self._process.poll()
        if self._reader is not None:
            self._reader.join(1)
        last = f": {self._log_lines[-1]}" if self._log_lines else ""
        told = (
            "has ended" if code is None else f"was killed by signal {-code}" if code < 0 else f"has ended with {code}"
        )
        return self._lost(f"the process of the client {told}{last}")

    def _lost(self, why: str) -> NotConnectedError:
        return NotConnectedError(self._masked(why))

    def _masked(self, text: str) -> str:
        for secret in self._broker.secrets:
            text = text.replace(secret, "******")
        return text

    def _follow(self, output: IO[bytes], kept: list[str]) -> None:
        """Takes the client's output into the log; `kept` gets the last line."""
        count, minute = 0, 0
        with output:
            for raw in output:
                line = self._masked(raw.decode("utf-8", "replace").strip()[:_LINE_CHARS])
                if not line or line.startswith(_NOTE):
                    continue
                kept[:] = [line]
                now = int(time.monotonic() / 60)
                count, minute = (count + 1, minute) if now == minute else (1, now)
                if count <= _MOST_LINES:
                    _log.info("the client says", connection=self._broker.name, line=line)
