"""JMS applications over AMQP 1.0 with Qpid JMS, or by Artemis' own client; most of them share a JVM."""

from __future__ import annotations

import atexit
import socket
import subprocess
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

from tests.java import jms_program

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

PROGRAM = Path(__file__).with_name("QpidClient.java")
_FAILED = "FAILED "


@cache
def _jvm() -> int:
    """Starts the JVM of the applications of this process, which ends with it; returns its port."""
    java, *options = jms_program(PROGRAM)
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [java, "-XX:+UseSerialGC", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
        )
        atexit.register(_end, process)
        assert process.stdout is not None
        with process.stdout:
            line = process.stdout.readline()
        if not line:
            log.seek(0)
            raise AssertionError(log.read().decode(errors="replace")[-4000:])
    return int(line)


def _end(process: subprocess.Popen[bytes]) -> None:
    with process:
        process.kill()


class QpidClient:
    """A JMS application of `QpidClient.java`, with the libraries that Artemis brings.

    Every method raises AssertionError with what the application says where it cannot do what is asked.
    """

    def __init__(self, url: str) -> None:
        """Returns when it is connected."""
        self._peer = socket.create_connection(("127.0.0.1", _jvm()))
        self._begin(self._peer.makefile("w", encoding="utf-8"), self._peer.makefile("r", encoding="utf-8"), url)

    def _begin(self, to: IO[str], origin: IO[str], url: str = "") -> None:
        self._to, self._from = to, origin
        try:
            answer = self._do(url) if url else self._answer()
            assert answer == "ready", answer
        except AssertionError:
            self.close()
            raise

    def send(self, destination: str, messages: Iterable[Mapping[str, str]]) -> None:
        """Messages as `QpidClient.java` describes them; returns when the broker has all of them."""
        self._send("send", destination, messages)

    def post(self, destination: str, messages: Iterable[Mapping[str, str]]) -> None:
        """The same without a transaction."""
        self._send("post", destination, messages)

    def begin_post(self, destination: str, messages: Iterable[Mapping[str, str]]) -> None:
        """The same; `answered` waits until the broker has all of them."""
        self._begin_send("post", destination, messages)

    def relay(self, destination: str, messages: Iterable[Mapping[str, str]]) -> None:
        """The same by a producer without a destination."""
        self._send("relay", destination, messages)

    def put(self, session: str, destination: str, messages: Iterable[Mapping[str, str]]) -> None:
        """Messages in the transaction of a session."""
        self._send(f"put {session}", destination, messages)

    def take(self, session: str, destination: str, seconds: float = 10) -> Mapping[str, str]:
        """The next message, in the transaction of a session; empty if none comes."""
        return self._message(f"take {session} {destination} {seconds * 1000:.0f}")

    def commit(self, session: str) -> str:
        """Ends the transaction of a session; why it could not, if so."""
        return self._do(f"commit {session}")

    def rollback(self, session: str) -> str:
        """The same, and what was done in it is not."""
        return self._do(f"rollback {session}")

    def begin(self, command: str) -> None:
        """A command whose answer is waited for by `answered`."""
        self._write(command)
        self._flush()

    def answered(self) -> str:
        """What a command answers that was begun."""
        return self._answer()

    def open(self, destination: str) -> None:
        """A consumer on `queue:NAME` or `topic:NAME` is there."""
        self._do(f"open {destination}")

    def select(self, destination: str, selector: str) -> None:
        """A consumer with a selector is there."""
        self._do(f"select {destination} {selector}")

    def receive(self, destination: str, seconds: float = 10) -> Mapping[str, str]:
        """The next message as the application sees it; empty if none comes."""
        return self._message(f"receive {destination} {seconds * 1000:.0f}")

    def answer(self, destination: str) -> Mapping[str, str]:
        """The next message, which the application sends back to its JMSReplyTo."""
        return self._message(f"answer {destination} 10000")

    def request(self, destination: str, text: str) -> None:
        """Sends a request whose reply goes to a temporary queue."""
        self._do(f"request {destination} {text}")

    def reply(self) -> Mapping[str, str]:
        """What came to the temporary queue."""
        return self._message("reply 10000")

    def close(self) -> None:
        """Returns when the connection to the broker has ended."""
        # The application may have ended by itself.
        with suppress(OSError):
            self._peer.shutdown(socket.SHUT_WR)
            self._from.read()
        self.leave()

    def leave(self) -> None:
        """Leaves the application alone with its connection to the broker, which may be cut."""
        for each in (self._to, self._from, self._peer):
            with suppress(OSError):
                each.close()

    def _send(self, how: str, destination: str, messages: Iterable[Mapping[str, str]]) -> None:
        self._begin_send(how, destination, messages)
        self._answer()

    def _begin_send(self, how: str, destination: str, messages: Iterable[Mapping[str, str]]) -> None:
        self._write(f"{how} {destination}")
        for message in messages:
            self._write(urlencode({"type": "text", **message}))
        self.begin("")

    def _message(self, command: str) -> Mapping[str, str]:
        return dict(parse_qsl(self._do(command), keep_blank_values=True))

    def _do(self, command: str) -> str:
        self.begin(command)
        return self._answer()

    def _flush(self) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):
            self._to.flush()

    def _write(self, line: str) -> None:
        self._to.write(f"{line}\n")

    def _answer(self) -> str:
        line = self._from.readline()
        assert line, f"the application has ended: {self._last_words()}"
        assert not line.startswith(_FAILED), line[:4000]
        return line.removesuffix("\n")

    def _last_words(self) -> str:
        return ""


class QpidProcess(QpidClient):
    """One in a process of its own, to kill or with other libraries."""

    def __init__(self, url: str, log: Path) -> None:
        """Returns when it is connected; `log` gets what it prints beside its answers."""
        self._run([*jms_program(PROGRAM), url], log)

    def _run(self, command: Sequence[str], log: Path) -> None:
        self._log = log
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, encoding="utf-8"
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._begin(self._process.stdin, self._process.stdout)

    def kill(self) -> None:
        """Ends it with no chance to say anything."""
        self._process.kill()
        self.close()

    def close(self) -> None:
        with suppress(BrokenPipeError):
            self._to.close()
        self._process.wait(30)
        self._from.close()

    def _last_words(self) -> str:
        return self._log.read_text(errors="replace")[-4000:]
