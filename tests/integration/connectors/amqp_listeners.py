"""Listeners for AMQP clients under test: their settings, one in a process of its own to kill, and JMS programs."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from engine.embedded.ports import accepts
from tests.conftest import JARS
from tests.integration.connectors.worker import start_worker
from tests.java import jms_program
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_ROOT = JARS.parent


def listening(port: int, *destinations: str, **more: str) -> Mapping[str, str]:
    """Settings of source `src`; those in `more` begin with a dot where they are read."""
    settings = {".type": "amqp", ".listen": f"amqp://127.0.0.1:{port}", ".destinations": ", ".join(destinations)}
    return settings | {f".{key.replace('_', '.')}": value for key, value in more.items()}


class SourceProcess:
    """The source of a configuration in a process of its own."""

    def __init__(self, file: Path, port: int) -> None:
        self._file, self._port = file, port
        self.start()

    def start(self) -> None:
        self._process = start_worker("source", "src", self._file)
        until(lambda: accepts(self._port), 60)

    def kill(self) -> None:
        """With no chance to say anything."""
        self._process.kill()
        self._process.wait(30)


class Sending:
    """`JmsSender.java`: sends numbered messages until all are accepted."""

    def __init__(self, url: str, queue: str, count: int, size: int, log: Path) -> None:
        program = _ROOT / "bench" / "peer" / "jms" / "JmsSender.java"
        self._log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [*jms_program(program), url, queue, "0", str(count), str(size)],
                stdout=output,
                stderr=output,
            )

    @property
    def accepted(self) -> int:
        """How often it has said that a thousandth message was accepted."""
        return self._log.read_text(errors="replace").count("accepted ")

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def finish(self, seconds: float = 120) -> float:
        """Waits until all are accepted; how many seconds sending took."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        assert code == 0, self._log.read_text(errors="replace")[-3000:]
        return float(self._log.read_text().split()[-1])
