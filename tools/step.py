"""Runs one long command of the set-up: its output goes to a log, one readable line says how far it is.

On a terminal that line is redrawn in place; elsewhere there is a line at the start, at the end, and now and then. Of
steps that run side by side, the one line shows all.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tools.readers import Explain, Read

__all__ = ["Step", "StepError"]

_TICK_SECONDS = 0.5
_QUIET_SECONDS = 15.0
"""Between two lines where lines cannot be redrawn."""
_lock = threading.Lock()
_running: dict[Step, str] = {}
"""The running steps, each with its text for the line. Guarded by `_lock`, as is the terminal."""


class StepError(Exception):
    """A command failed; the text is the one line of its output that tells why, and the name of the log."""


class Step:
    """Command whose progress is shown."""

    def __init__(self, title: str, log: Path, read: Read, explain: Explain, screen: TextIO = sys.stderr) -> None:
        self._title, self._log, self._read, self._explain, self._screen = title, log, read, explain, screen
        self._activity = ""
        self._started = self._shown = time.monotonic()

    def run(self, command: Sequence[str | Path], folder: Path) -> None:
        """Returns when the command has succeeded; StepError when it has not."""
        lines = []
        self._started = self._shown = time.monotonic()
        if not self._screen.isatty():
            self._say(f"{self._title} ...")
        with self._log.open("a") as log:
            log.write(f"\n$ {' '.join(map(str, command))}\n")
            process = subprocess.Popen(
                command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            try:
                for line in _lines(process):
                    if line is not None:
                        lines.append(line)
                        log.write(line + "\n")
                        self._activity = self._read(line) or self._activity
                    self._progress()
            finally:
                # Also on Ctrl-C, which the command has received as well.
                status = process.wait()
        if status != 0:
            self._clear()
            message = f"{self._title}: {self._explain(lines)}; see {os.path.relpath(self._log)}"
            raise StepError(message)
        self._clear()
        self._say(f"{self._title}: done in {self._seconds()} s")

    def _progress(self) -> None:
        now = time.monotonic()
        text = f"{self._title}: {self._activity or 'started'} ({self._seconds()} s)"
        if self._screen.isatty():
            width = shutil.get_terminal_size().columns - 1
            with _lock:
                _running[self] = text
                self._screen.write(f"\r\033[K{' | '.join(_running.values())[:width]}")
                self._screen.flush()
        elif now - self._shown > _QUIET_SECONDS:
            self._shown = now
            self._say(text)

    def _clear(self) -> None:
        with _lock:
            _running.pop(self, None)
            if self._screen.isatty():
                self._screen.write("\r\033[K")

    def _say(self, text: str) -> None:
        print(text, file=self._screen, flush=True)

    def _seconds(self) -> int:
        return round(time.monotonic() - self._started)


def _lines(process: subprocess.Popen[bytes]) -> Iterator[str | None]:
    """Lines of output as they come, and None each time nothing came for a moment, so that the clock moves on."""
    assert process.stdout is not None
    pending = b""
    with selectors.DefaultSelector() as selector, contextlib.closing(process.stdout) as pipe:
        selector.register(pipe, selectors.EVENT_READ)
        while True:
            if not selector.select(_TICK_SECONDS):
                yield None
                continue
            chunk = os.read(pipe.fileno(), 65536)
            if not chunk:
                break
            *whole, pending = (pending + chunk).replace(b"\r", b"\n").split(b"\n")
            for line in whole:
                yield line.decode(errors="replace")
    if pending:
        yield pending.decode(errors="replace")
