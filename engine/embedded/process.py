"""A child process that never outlives the bridge, with its output in a file.

The process runs in a session of its own, so that Ctrl-C in the terminal does not reach it before the bridge has stopped
its sources. `engine.embedded.server` chooses the program and tells when it is ready.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from engine.private import UMASK

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["ChildProcess"]

# The first shell becomes the program and keeps its pid; a second shell waits on a pipe whose other end only this
# process holds. If the pipe closes without a farewell, for whatever reason this process ended, the second shell kills
# the program. A parent-death signal would work on Linux only, and would already come when the thread that started the
# program ends.
_TIED_TO_US = """
exec 3<&0
(read -r farewell <&3 || kill -KILL $$) >/dev/null 2>&1 &
exec "$@" </dev/null 3<&-
"""


class ChildProcess:
    """A run of a program."""

    def __init__(self, command: Sequence[str | Path], folder: Path, console: Path) -> None:
        """Starts `command` in `folder`; its stdout and stderr replace the content of the file `console`."""
        with console.open("wb") as output:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _TIED_TO_US, "sh", *map(str, command)],
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                umask=UMASK,
            )

    @property
    def pid(self) -> int:
        """Process id of the program itself, not of a shell around it."""
        return self._process.pid

    def alive(self) -> bool:
        """True if the program still runs."""
        return self._process.poll() is None

    def ended_within(self, seconds: float) -> bool:
        """Waits up to `seconds` for the program to end; returns False if it still runs."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    @property
    def exit_status(self) -> int | None:
        """Exit status of the program; None while it runs, negative the number of the signal that ended it."""
        return self._process.poll()

    def stop(self, limit_seconds: float) -> None:
        """Terminates the program, kills it if it runs on for `limit_seconds`, and returns when it is gone."""
        if self.alive():
            self._process.terminate()
            if not self.ended_within(limit_seconds):
                self._process.kill()
                self._process.wait()
        self._dismiss_watcher()

    def _dismiss_watcher(self) -> None:
        pipe = self._process.stdin
        if pipe is None or pipe.closed:
            return
        try:
            pipe.write(b"farewell\n")
            pipe.close()
        except BrokenPipeError:
            # The watching shell was killed from outside, so there is nothing left to dismiss.
            pass
