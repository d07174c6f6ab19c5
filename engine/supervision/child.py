"""The supervisor's handle on the process of one part: starts it, tells it to begin, asks it to stop, kills it.

Supervisor and child share a socket. The child writes its status to it. The supervisor writes the configuration that the
child works by, and later ones for parts that can change while they run; a line when the child may begin its work; and,
if that depends on an election, a line now and then with the time until which the child may work. It closes its half
when the child is to stop. The socket also closes when the supervisor dies, so a child never outlives it. The child's
end of the socket is read in `worker`.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from engine.private import nameless_file
from engine.telemetry.status import State, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from threading import Thread

    from engine.supervision.parts import Part
    from engine.supervision.revision import Revision
    from engine.telemetry.status import StatusBoard
    from routes.model import Config

__all__ = ["ASK", "GO", "GO_ON", "REVISION", "UNTIL", "Child", "command"]

REVISION = b"revision "
"""Start of the line that announces a configuration: a number and a line end follow, and a file's descriptor comes with
it."""
GO = b"go\n"
"""The line that the supervisor writes when everything that the child needs is ready."""
GO_ON = b"go on\n"
"""The line that it writes instead if the bridge is at work already, see `Child.is_first`."""
ASK = b"ask "
"""Start of the line with a question: its number, a space, JSON and a line end follow. The status has the answer."""
UNTIL = b"until "
"""Start of the line with the end of the lease: a `time.monotonic` time and a line end follow. The child is killed at
that time, unless a later line moves it."""
_SEND_SECONDS = 0.5


def command(part: Part, config: Path) -> list[str]:
    """Returns the command line that runs a part of a configuration."""
    # The file is there for the readers of a process list: the child gets its configuration from the supervisor.
    process = [sys.executable, "-m", "engine.supervision", "--config", str(config)]
    return [*process, "--only", part.only, "--worker", str(part.worker)]


class Child:
    """The process of one part, and its successor after a restart."""

    def __init__(
        self,
        part: Part,
        command: Sequence[str],
        board: StatusBoard,
        lock: int | None,
        revision: Revision | None = None,
        early: Callable[[Config], bytes | None] | None = None,
    ) -> None:
        """Creates the handle; no process runs before `start`.

        `--status-fd N` is appended to `command`. The process inherits the descriptor `lock`, if there is one, and so
        holds that lock for as long as it lives. If `early` returns bytes for the configuration, the process also gets
        `--launch-fd N`, a file with them, which may be secret.
        """
        self.part = part
        self._command = command
        self._board = board
        self._lock = lock
        self._revision = revision
        self._early = early
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._reader: Thread | None = None
        self._sent_at = 0.0
        self.released = False
        self.is_first = True
        """True in the first process of a part that an operator has just added, by a start of the bridge or a reload.

        A refusal by its system then ends the bridge, or the reload, since the operator is told. Later, other systems
        are at work, and none of them ends because of this one.
        """

    @property
    def name(self) -> str:
        """The part's name."""
        return self.part.name

    @property
    def pid(self) -> int | None:
        """The id of the process, which leads a session of its own; None while no process runs."""
        process = self._process
        return process.pid if process else None

    @property
    def running(self) -> bool:
        """True from `start` until `ended` has reported the end of the process."""
        return self._process is not None

    def start(self) -> None:
        """Starts a new process, which prepares itself and waits for `release`.

        Raises:
            OSError: the machine has no memory, process or descriptor left for it.
        """
        with ExitStack() as begun, ExitStack() as files:
            ours, theirs = (begun.enter_context(end) for end in socket.socketpair())
            heard = begun.enter_context(ours.dup())
            inherited = {"--status-fd": theirs.fileno()}
            if self._early and self._revision and (described := self._early(self._revision.config)):
                inherited["--launch-fd"] = files.enter_context(nameless_file(described)).fileno()
            self._process = subprocess.Popen(
                [*self._command, *(word for name, fd in inherited.items() for word in (name, str(fd)))],
                stdin=subprocess.DEVNULL,
                pass_fds=(*inherited.values(), *(() if self._lock is None else (self._lock,))),
                # Without the variables that `engine.kafka.kerberos` sets for this process alone.
                env=os.environ,
                # Ctrl-C in the terminal goes to the supervisor only; and killing the session's group ends all that the
                # child started.
                start_new_session=True,
            )
            theirs.close()
            begun.pop_all()
        self._board.put(Status(self.name, State.STARTING))
        self._socket = ours
        self._sent_at = 0.0
        self.released = False
        self._reader = self._board.read(self.name, heard.detach())
        if self._revision and not self.hand_over():
            self.kill()  # without its configuration it would wait for ever; `ended` will report it

    def give(self, revision: Revision) -> None:
        """Sets the configuration that the part works by from its next start, or from the next `hand_over`."""
        self._revision = revision

    def hand_over(self) -> bool:
        """Sends the configuration to the process; returns False if the process cannot take it at this moment."""
        if self._socket is None or self._revision is None:
            return False
        line = REVISION + b"%d\n" % self._revision.number
        try:
            with self._revision.opened() as descriptor:
                socket.send_fds(self._socket, [line], [descriptor], socket.MSG_DONTWAIT)
        except OSError:  # the process is busy or has died, or no descriptor is left
            return False
        return True

    def release(self) -> None:
        """Tells the process to begin its work, since everything that it needs is ready."""
        self.released = True
        if self._socket:
            with suppress(BrokenPipeError):  # the process has just died, which `ended` will report
                self._socket.sendall(GO if self.is_first else GO_ON)

    def may_work(self, until: float) -> None:
        """Lets the process work until a `time.monotonic` time, even if its supervisor dies.

        It is to be called again before that time.
        """
        now = time.monotonic()
        if self._socket and now - self._sent_at > _SEND_SECONDS:
            self._sent_at = now
            # A stopped process does not read, and the death of one is reported by `ended`.
            with suppress(BlockingIOError, BrokenPipeError):
                self._socket.send(UNTIL + f"{until:.3f}\n".encode(), socket.MSG_DONTWAIT)

    def ask(self, question: Mapping[str, object], seconds: float) -> str | None:
        """The answer of the process to a question; None if it gives none in this time. From any thread."""
        if (to := self._socket) is None:
            return None
        number = self._board.question()
        try:
            to.send(ASK + b"%d %s\n" % (number, json.dumps(question).encode()), socket.MSG_DONTWAIT)
        except OSError:  # the process is busy or has died
            seconds = 0.0
        return self._board.answer(number, seconds)

    def ask_to_stop(self) -> None:
        """Asks the process to finish the work that it has begun and end."""
        if self._socket:
            with suppress(OSError):  # not connected any more: the process has died
                self._socket.shutdown(socket.SHUT_WR)

    def kill(self) -> None:
        """Kills the process and all processes that it started."""
        if self._process:
            _kill_group(self._process.pid)

    def ended(self) -> int | None:
        """Returns the exit status of a process that has ended, negative for a signal, once; None while it runs.

        When it returns a status, the last status of the process is on the board and no process that it started is left.
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
    # The number of a group is not reused while a member lives; after that there is no such group.
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)
