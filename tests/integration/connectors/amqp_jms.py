"""A real JMS application over AMQP 1.0, with Qpid JMS."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

from tests.java import jms_program

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

PROGRAM = Path(__file__).with_name("QpidClient.java")


class QpidClient:
    """`QpidClient.java` with the library that Artemis brings."""

    def __init__(self, url: str, log: Path) -> None:
        self._begin([*jms_program(PROGRAM), url], log)

    def _begin(self, command: Sequence[str], log: Path) -> None:
        """Starts the program, and returns when it is connected; AssertionError with its output if it cannot."""
        self._log = log
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, encoding="utf-8"
            )
        try:
            answer = self._answer()
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

    def kill(self) -> None:
        """With no chance to say anything."""
        self._process.kill()
        self.close()

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
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        # It may have ended by itself.
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()

    def _send(self, how: str, destination: str, messages: Iterable[Mapping[str, str]]) -> None:
        self._write(f"{how} {destination}")
        for message in messages:
            self._write(urlencode({"type": "text", **message}))
        self._do("")

    def _message(self, command: str) -> Mapping[str, str]:
        return dict(parse_qsl(self._do(command), keep_blank_values=True))

    def _do(self, command: str) -> str:
        self.begin(command)
        return self._answer()

    def _flush(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.flush()

    def _write(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait(30)
            raise AssertionError(self._log.read_text(errors="replace")[-4000:])
        return line.removesuffix("\n")
