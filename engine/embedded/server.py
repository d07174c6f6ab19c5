"""Base class of the embedded brokers: a process that is started until it answers, and stopped until it is gone."""

from __future__ import annotations

import shutil
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from engine.embedded.ports import require_free
from engine.embedded.process import ChildProcess
from engine.errors import SetupError
from engine.private import make_folder

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping, Sequence

__all__ = ["ETC", "EmbeddedServer"]

ETC = Path(__file__).with_name("etc")
"""Folder of the configuration files that are the same on every machine."""

_STOP_SECONDS = 20.0
_LEAST_FREE_BYTES = 1_000_000


class EmbeddedServer(ABC):
    """A broker in a child process. All its files are in one folder, its logs in `log` below it."""

    title: ClassVar[str]
    """Name of the broker, for messages."""
    ready_seconds: ClassVar[float] = 180.0
    """Seconds that the broker may take until it answers: enough after a crash and on a busy machine."""
    causes: ClassVar[Sequence[re.Pattern[str]]] = ()
    """Patterns of output lines that tell why the broker ended, the most telling first; the group is the reason."""

    def __init__(self, folder: Path, ports: Mapping[str, int]) -> None:
        """`ports` are the ports on which the broker listens, by the setting that changes them."""
        self.folder = folder.absolute()
        self.ports = ports
        self.log = self.folder / "log" / f"{self.title.lower()}.log"
        self._console = self.folder / "log" / "console.log"
        self._process: ChildProcess | None = None
        self._logged_before = 0

    @property
    def pid(self) -> int | None:
        """Process id of the broker; None before its first start."""
        return self._process.pid if self._process else None

    def alive(self) -> bool:
        """True if the broker's process runs."""
        return self._process is not None and self._process.alive()

    def start(self) -> None:
        """Starts the broker and returns when it answers; does nothing if it runs.

        Raises:
            SetupError: the broker cannot be started, or does not answer in time; the text is one line.
        """
        if self.alive():
            return
        self.stop()
        program = self._find_program()
        for setting, port in self.ports.items():
            require_free(port, setting)
        make_folder(self.log.parent)
        command = self._command(program)
        self._logged_before = self.log.stat().st_size if self.log.exists() else 0
        self._process = ChildProcess(command, self.folder, self._console)
        self._await_answer(self._process)

    def stop(self) -> None:
        """Stops the broker cleanly, so that the next start has nothing to repair; returns when the process is gone."""
        if self._process is not None:
            self._process.stop(_STOP_SECONDS)

    @abstractmethod
    def _find_program(self) -> Path:
        """The program to run; SetupError, with one line of text, if this machine does not have it."""

    @abstractmethod
    def _command(self, program: Path) -> Sequence[str | Path]:
        """Prepares the folder for `program` and returns the command to run in it."""

    @abstractmethod
    def _answers(self) -> bool:
        """True if the broker serves requests now; returns within some seconds."""

    def _await_answer(self, process: ChildProcess) -> None:
        deadline = time.monotonic() + self.ready_seconds
        while not self._answers():
            if process.ended_within(0.05):
                self.stop()
                msg = f"embedded {self.title} ended at start: {self._cause()}; see {self.log}"
                raise SetupError(msg)
            if time.monotonic() > deadline:
                self.stop()
                msg = f"embedded {self.title} did not answer within {self.ready_seconds:.0f} s; see {self.log}"
                raise SetupError(msg)

    def _logged(self) -> str:
        """Text that this run has logged."""
        return _read_from(self.log, self._logged_before)

    def _cause(self) -> str:
        """The line of this run's output that best tells why the broker ended."""
        text = self._logged() + "\n" + _read_from(self._console, 0)
        for kind in self.causes:
            if said := kind.findall(text):
                return str(said[-1]).strip()
        if lines := [line.strip() for line in text.splitlines() if line.strip()]:
            return lines[-1]
        if shutil.disk_usage(self.folder).free < _LEAST_FREE_BYTES:
            return "the disk is full, and so it could not even say why"
        status = self._process.exit_status if self._process else None
        return f"exit status {status}, and not a word"


def _read_from(file: Path, position: int) -> str:
    """Text of a log file from a position in bytes on; the whole file if it has been rolled over since."""
    if not file.exists():
        return ""
    with file.open("rb") as stream:
        stream.seek(position if position <= file.stat().st_size else 0)
        return stream.read().decode(errors="replace")
