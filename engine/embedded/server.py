"""What the embedded brokers have in common: one process, started until it answers, stopped until it is gone."""

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
"""Configuration files that are the same on every machine."""

_STOP_PATIENCE_SECONDS = 20.0
_LEAST_FREE_BYTES = 1_000_000


class EmbeddedServer(ABC):
    """A broker in a process of its own. Everything it writes is in one folder, its logs in `log` below it."""

    title: ClassVar[str]
    """Its name for people."""
    ready_seconds: ClassVar[float] = 180.0
    """How long it may take until it answers: after a crash, on a machine that does much else at the time."""
    causes: ClassVar[Sequence[re.Pattern[str]]] = ()
    """Lines of its output that tell why it ended, the most telling kind first; the group is what they say."""

    def __init__(self, folder: Path, ports: Mapping[str, int]) -> None:
        """`ports` are those it listens on, by the setting that changes them."""
        self.folder = folder.absolute()
        self.ports = ports
        self.log = self.folder / "log" / f"{self.title.lower()}.log"
        self._console = self.folder / "log" / "console.log"
        self._process: ChildProcess | None = None

    @property
    def pid(self) -> int | None:
        """Of the broker; None when none was started."""
        return self._process.pid if self._process else None

    def alive(self) -> bool:
        """Whether its process runs."""
        return self._process is not None and self._process.alive()

    def start(self) -> None:
        """Returns when the broker answers; SetupError in one line when it cannot. Does nothing when it runs."""
        if self.alive():
            return
        self.stop()
        program = self._find_program()
        for setting, port in self.ports.items():
            require_free(port, setting)
        make_folder(self.log.parent)
        command = self._command(program)
        logged_before = self.log.stat().st_size if self.log.exists() else 0
        self._process = ChildProcess(command, self.folder, self._console)
        self._await_answer(self._process, logged_before)

    def stop(self) -> None:
        """Ends the broker in order, so that the next start has nothing to repair; returns when it is gone."""
        if self._process is not None:
            self._process.stop(_STOP_PATIENCE_SECONDS)

    @abstractmethod
    def _find_program(self) -> Path:
        """What is run; SetupError in one line when this machine does not have it."""

    @abstractmethod
    def _command(self, program: Path) -> Sequence[str | Path]:
        """Brings the folder into the state that `program` expects; returns what to run in it."""

    @abstractmethod
    def _answers(self) -> bool:
        """Whether the broker serves requests now; returns within some seconds."""

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
    if not file.exists():
        return ""
    with file.open("rb") as stream:
        # A log that has been rolled over since is read as a whole.
        stream.seek(position if position <= file.stat().st_size else 0)
        return stream.read().decode(errors="replace")
