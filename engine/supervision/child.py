"""One part of the bridge as a process: started, told to go, asked to stop, killed.

Supervisor and child share a socket. The child writes its status there; the supervisor writes one byte when the child
may begin its work, and closes its half when the child is to stop. A supervisor that dies closes it as well, so a child
never outlives it. The other end is `worker`.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from engine.telemetry.status import State, Status

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from threading import Thread

    from engine.supervision.parts import Part
    from engine.telemetry.status import StatusBoard

__all__ = ["GO", "Child", "command"]

GO = b"g"
"""What the supervisor writes when everything that the child needs is ready."""


def command(part: Part, config: Path) -> list[str]:
    """How a part of a configuration is run."""
    bridge = [sys.executable, "-m", "engine", "run", "--config", str(config)]
    return [*bridge, "--only", part.only, "--worker", str(part.worker)]


class Child:
    """A part's process, and after it has died the next one."""

    def __init__(self, part: Part, command: Sequence[str], board: StatusBoard, lock: int) -> None:
        """`command` gets `--status-fd N` appended; `lock` is a descriptor that the process holds while it lives."""
        self.part = part
        self._command = command
        self._board = board
        self._lock = lock
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._reader: Thread | None = None
        self.released = False

    @property
    def name(self) -> str:
        """The part's."""
        return self.part.name

    @property
    def running(self) -> bool:
        """Whether there is a process whose end has not been taken note of."""
        return self._process is not None

    def start(self) -> None:
        """A new process; it prepares itself and waits for `release`."""
        ours, theirs = socket.socketpair()
        self._board.put(Status(self.name, State.STARTING))
        with theirs:
            self._process = subprocess.Popen(
                [*self._command, "--status-fd", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), self._lock),
                # Ctrl-C in the terminal is the supervisor's; and all that the child starts can be ended with it.
                start_new_session=True,
            )
        self._socket = ours
        self.released = False
        self._reader = self._board.read(self.name, os.dup(ours.fileno()))

    def release(self) -> None:
        """What it needs is ready: it may begin."""
        self.released = True
        if self._socket:
            with suppress(BrokenPipeError):  # it has just died, which `ended` will tell
                self._socket.sendall(GO)

    def ask_to_stop(self) -> None:
        """It is to finish what it has begun and end."""
        if self._socket:
            with suppress(OSError):  # not connected any more: it has died
                self._socket.shutdown(socket.SHUT_WR)

    def kill(self) -> None:
        """The process and all it has started end at once."""
        if self._process:
            _kill_group(self._process.pid)

    def ended(self) -> int | None:
        """The exit status of a process that has ended, negative for a signal, told once; None while it runs.

        By then its last words are on the board and nothing is left of what it started.
        """
        if self._process is None or (code := self._process.poll()) is None:
            return None
        _kill_group(self._process.pid)
        if self._reader:
            self._reader.join(timeout=5)
        if self._socket:
            self._socket.close()
        self._process = self._socket = self._reader = None
        return code


def _kill_group(leader: int) -> None:
    # Its number is not given away while one of the group lives; after that there is no such group.
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)
