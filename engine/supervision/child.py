"""One part of the bridge as a process: started, told to go, asked to stop, killed.

Supervisor and child share a socket. The child writes its status there; the supervisor hands over the configuration that
the child works by, and a newer one to those that can change while they run, writes a line when the child may begin its
work, a line now and then that says until when it may work, if that depends on an election, and closes its
half when the child is to stop. A supervisor that dies closes it as well, so a child never outlives it. The other end is
`worker`.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from engine.telemetry.status import State, Status

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from threading import Thread

    from engine.supervision.parts import Part
    from engine.supervision.revision import Revision
    from engine.telemetry.status import StatusBoard

__all__ = ["GO", "REVISION", "UNTIL", "Child", "command"]

REVISION = b"revision "
"""Followed by its number and a line's end, and sent with the descriptor of a file: a configuration."""
GO = b"go\n"
"""What the supervisor writes when everything that the child needs is ready."""
UNTIL = b"until "
"""Followed by a time of `time.monotonic` and a line's end: at that time the child is killed, unless told another."""
_TELL_SECONDS = 0.5


def command(part: Part, config: Path) -> list[str]:
    """How a part of a configuration is run."""
    bridge = [sys.executable, "-m", "engine", "run", "--config", str(config)]
    return [*bridge, "--only", part.only, "--worker", str(part.worker)]


class Child:
    """A part's process, and after it has died the next one."""

    def __init__(
        self,
        part: Part,
        command: Sequence[str],
        board: StatusBoard,
        lock: int | None,
        revision: Revision | None = None,
    ) -> None:
        """`command` gets `--status-fd N` appended; `lock`, if any, is a descriptor that the process holds on to."""
        self.part = part
        self._command = command
        self._board = board
        self._lock = lock
        self._revision = revision
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._reader: Thread | None = None
        self._told_at = 0.0
        self.released = False

    @property
    def name(self) -> str:
        """The part's."""
        return self.part.name

    @property
    def pid(self) -> int | None:
        """Of its process, which leads a session of its own; None while there is none."""
        process = self._process
        return process.pid if process else None

    @property
    def running(self) -> bool:
        """Whether there is a process whose end has not been taken note of."""
        return self._process is not None

    def start(self) -> None:
        """A new process; it prepares itself and waits for `release`. OSError if there is nothing left for one."""
        with ExitStack() as begun:
            ours, theirs = (begun.enter_context(end) for end in socket.socketpair())
            heard = begun.enter_context(ours.dup())
            self._process = subprocess.Popen(
                [*self._command, "--status-fd", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), *(() if self._lock is None else (self._lock,))),
                # Ctrl-C in the terminal is the supervisor's; and all that the child starts can be ended with it.
                start_new_session=True,
            )
            theirs.close()
            begun.pop_all()
        self._board.put(Status(self.name, State.STARTING))
        self._socket = ours
        self._told_at = 0.0
        self.released = False
        self._reader = self._board.read(self.name, heard.detach())
        if self._revision and not self.hand_over():
            self.kill()  # it would wait for its configuration for ever; `ended` will tell

    def give(self, revision: Revision) -> None:
        """The configuration that it works by from its next start on, or from `hand_over`."""
        self._revision = revision

    def hand_over(self) -> bool:
        """Gives the process its configuration; False if it cannot take it at this moment."""
        if self._socket is None or self._revision is None:
            return False
        line = REVISION + b"%d\n" % self._revision.number
        try:
            with self._revision.opened() as descriptor:
                socket.send_fds(self._socket, [line], [descriptor], socket.MSG_DONTWAIT)
        except OSError:  # it is busy or has died, or no descriptor is left
            return False
        return True

    def release(self) -> None:
        """What it needs is ready: it may begin."""
        self.released = True
        if self._socket:
            with suppress(BrokenPipeError):  # it has just died, which `ended` will tell
                self._socket.sendall(GO)

    def may_work(self, until: float) -> None:
        """It may go on until then (`time.monotonic`), even if its supervisor is gone. To be told again before."""
        now = time.monotonic()
        if self._socket and now - self._told_at > _TELL_SECONDS:
            self._told_at = now
            # One that stands still does not read, and one that has just died is told by `ended`.
            with suppress(BlockingIOError, BrokenPipeError):
                self._socket.send(UNTIL + f"{until:.3f}\n".encode(), socket.MSG_DONTWAIT)

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
