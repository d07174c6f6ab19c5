"""A child process that never outlives the bridge, with its output in a file.

It runs in a session of its own, so that Ctrl-C in the terminal does not reach it before the bridge has stopped its
sources. What to run and when it is ready is said by `engine.embedded.server`.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from engine.private import UMASK

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["ChildProcess"]

# The shell becomes the program (same pid); a second shell waits on a pipe that only this process holds open. When it
# closes without a farewell, however this process ended, the program is killed. A parent-death signal would do the same
# on Linux only, and it would already come when the thread that started the program ends.
_TIED_TO_US = """
exec 3<&0
(read -r farewell <&3 || kill -KILL $$) >/dev/null 2>&1 &
exec "$@" </dev/null 3<&-
"""


class ChildProcess:
    """One run of one program."""

    def __init__(self, command: Sequence[str | Path], folder: Path, console: Path) -> None:
        """Starts `command` in `folder`; what it writes to stdout and stderr replaces the file `console`."""
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
        """Of the program itself, not of a shell around it."""
        return self._process.pid

    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def ended_within(self, seconds: float) -> bool:
        """Waits that long for the end; False when the program still runs."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    @property
    def exit_status(self) -> int | None:
        """None while it runs; negative: the signal that ended it."""
        return self._process.poll()

    def stop(self, patience_seconds: float) -> None:
        """Asks it to end, kills it when it has not done so in time, and returns when it is gone."""
        if self.alive():
            self._process.terminate()
            if not self.ended_within(patience_seconds):
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
            # The watcher went first: it was killed from outside. There is nothing left to dismiss.
            pass
