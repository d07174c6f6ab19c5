"""A process that runs one command of `jms-bridge` after the other, all with one Spark session.

A start of Spark takes several times the CPU time of a topology of these tests.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from engine.cli import main
from engine.spark import session
from engine.spark.launch import Launch
from engine.topologies.runtime import run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["Command", "SharedProcess"]

_OF_TESTS = "tests.integration.topologies.definitions"


class Command:
    """A command that runs in a shared process; has what tests use of `subprocess.Popen`."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.pid = process.pid
        """Id of the shared process, which leads a group of processes of its own."""
        self._process = process
        self._code: int | None = None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def poll(self) -> int | None:
        """Exit code of the command; None while it runs."""
        return self._code

    def wait(self, timeout: float) -> int:
        """Exit code of the command, for which it waits."""
        self._reader.join(timeout)
        if self._code is None:
            raise subprocess.TimeoutExpired("jms-bridge", timeout)
        return self._code

    def stop(self) -> None:
        """Tells the command to end; the process goes on with the next one."""
        os.kill(self.pid, signal.SIGTERM)

    def _read(self) -> None:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        self._code = int(line) if line else self._process.wait()


class SharedProcess:
    """The shared process, which starts with its first command, and again if it was killed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, arguments: list[str], environment: Mapping[str, str], log: Path) -> Command:
        """Runs a command, whose output goes to the end of a file; the one before has ended."""
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
            )
        assert self._process.stdin is not None
        task = {"arguments": arguments, "environment": dict(environment), "log": str(log)}
        self._process.stdin.write(json.dumps(task).encode() + b"\n")
        self._process.stdin.flush()
        return Command(self._process)

    def close(self) -> None:
        """Ends the process, and all that it has started."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                assert pipe is not None
                pipe.close()
            self._process = None


def _run(task: dict[str, Any]) -> int:
    os.environ.clear()
    os.environ.update(task["environment"])
    # A topology's module has the names of its topics from the environment.
    sys.modules.pop(_OF_TESTS, None)
    log = os.open(task["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for output in (1, 2):
        os.dup2(log, output)
    os.close(log)
    try:
        main(task["arguments"])
    except SystemExit as end:
        return int(end.code or 0)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def _is_usable() -> bool:
    """Whether the next command finds no session, or one whose JVM runs."""
    gateway = SparkContext._gateway
    return gateway is None or gateway.proc.poll() is None


def _run_commands() -> None:
    tasks, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    # A command that asks gets no answer.
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    # The first command starts a JVM, and those behind it use its session.
    jvms: list[Launch] = []

    def launch_once(folder: Path, log: Path, settings: Mapping[str, str]) -> Launch:
        if not jvms:
            jvms.append(Launch(folder, log, settings))
        return jvms[0]

    open_session = session.open_session

    def open_once(launched: Launch) -> SparkSession:
        return SparkSession.getActiveSession() or open_session(launched)

    vars(run).update(Launch=launch_once)
    vars(session).update(open_session=open_once, close=lambda _: None)
    for line in tasks:
        code = _run(json.loads(line))
        if not _is_usable():
            sys.exit(code)
        print(code, file=answers, flush=True)


if __name__ == "__main__":
    _run_commands()
