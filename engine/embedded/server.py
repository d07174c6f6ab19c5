"""What the embedded brokers have in common: one JVM, started until it answers, stopped until it is gone."""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from engine.embedded.java import find_java
from engine.embedded.ports import require_free
from engine.embedded.process import ChildProcess
from engine.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["ETC", "QUICK_START", "EmbeddedServer"]

ETC = Path(__file__).with_name("etc")
"""Configuration files that are the same on every machine."""

QUICK_START = ("-XX:TieredStopAtLevel=1",)
"""JVM options that halve the work of a start, for brokers that live a minute; they stay slower for good."""

# The optimising compiler comes in later than by default: it would take half the processor time of a start.
_LATE_OPTIMISING = (
    "-XX:Tier4InvocationThreshold=20000",
    "-XX:Tier4MinInvocationThreshold=5000",
    "-XX:Tier4CompileThreshold=50000",
    "-XX:Tier4BackEdgeThreshold=200000",
)
_STOP_PATIENCE_SECONDS = 20.0
_CAUSE = re.compile(r"^(?:Caused by: )?(?:[\w$]+\.)+[\w$]*(?:Exception|Error|Throwable)\b.*|^Error: .*", re.MULTILINE)
_LOGGED_ERROR = re.compile(r"^.* (?:ERROR|FATAL) +(.*)$", re.MULTILINE)


class EmbeddedServer(ABC):
    """A broker in a JVM of its own. Everything it writes is in one folder, its logs in `log` below it."""

    title: ClassVar[str]
    """Its name for people."""
    ready_seconds: ClassVar[float] = 60.0
    """How long it may take until it answers."""

    def __init__(self, folder: Path, ports: Mapping[str, int], heap_megabytes: int, jvm: Sequence[str]) -> None:
        """`ports` are those it listens on, by the setting that changes them; `jvm` are options for Java."""
        self.folder = folder.absolute()
        self.ports = ports
        self.log = self.folder / "log" / f"{self.title.lower()}.log"
        self._console = self.folder / "log" / "console.log"
        self._jvm = [f"-Xmx{heap_megabytes}m", "-XX:+UseG1GC", *_LATE_OPTIMISING, *jvm]
        self._process: ChildProcess | None = None

    @property
    def pid(self) -> int | None:
        """Of the JVM; None when none was started."""
        return self._process.pid if self._process else None

    def alive(self) -> bool:
        """Whether the JVM runs."""
        return self._process is not None and self._process.alive()

    def start(self) -> None:
        """Returns when the broker answers; SetupError in one line when it cannot. Does nothing when it runs."""
        if self.alive():
            return
        self.stop()
        java = find_java()
        for setting, port in self.ports.items():
            require_free(port, setting)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._prepare(java)
        logged_before = self.log.stat().st_size if self.log.exists() else 0
        self._process = ChildProcess(self._command(java), self.folder, self._console)
        self._await_answer(self._process, logged_before)

    def stop(self) -> None:
        """Ends the broker in order, so that the next start has nothing to repair; returns when it is gone."""
        if self._process is not None:
            self._process.stop(_STOP_PATIENCE_SECONDS)

    @abstractmethod
    def _prepare(self, java: Path) -> None:
        """Brings the folder into the state that the program expects."""

    @abstractmethod
    def _program(self) -> Sequence[str | Path]:
        """What Java runs in `folder`: properties, class path, main class, arguments."""

    @abstractmethod
    def _answers(self) -> bool:
        """Whether the broker serves requests now; returns within about a second."""

    def _command(self, java: Path) -> Sequence[str | Path]:
        return [java, *self._jvm, *self._logging(), *self._program()]

    def _logging(self) -> list[str]:
        return [
            f"-Dlog4j2.configurationFile={(ETC / 'log4j2.properties').as_uri()}",
            f"-Djmsbridge.log={self.log.relative_to(self.folder)}",
            "-Dlog4j2.disableJmx=true",
        ]

    def _await_answer(self, process: ChildProcess, logged_before: int) -> None:
        deadline = time.monotonic() + self.ready_seconds
        while not self._answers():
            if process.ended_within(0.05):
                self.stop()
                msg = f"embedded {self.title} ended at start: {self._cause(logged_before)}; see {self.log}"
                raise SetupError(msg)
            if time.monotonic() > deadline:
                self.stop()
                msg = f"embedded {self.title} did not answer within {self.ready_seconds:.0f} s; see {self.log}"
                raise SetupError(msg)

    def _cause(self, logged_before: int) -> str:
        """The one line of this run's output that tells most."""
        text = _read_from(self.log, logged_before) + "\n" + _read_from(self._console, 0)
        if causes := _CAUSE.findall(text):
            return str(causes[-1]).strip().removeprefix("Caused by: ").removeprefix("Error: ")
        if errors := _LOGGED_ERROR.findall(text):
            return str(errors[-1]).strip()
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        status = self._process.exit_status if self._process else None
        return lines[-1] if lines else f"exit status {status}, and not a word"


def _read_from(file: Path, position: int) -> str:
    if not file.exists():
        return ""
    with file.open("rb") as stream:
        # A log that has been rolled over since is read as a whole.
        stream.seek(position if position <= file.stat().st_size else 0)
        return stream.read().decode(errors="replace")
