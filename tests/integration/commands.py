"""Commands of `jms-bridge`, run in the process of the tests.

A process of their own would first import modules, for half a second of CPU time. Tests of the program start it.
"""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, NamedTuple

from engine.cli import main

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Printed", "printed", "run"]


class Printed(NamedTuple):
    """Exit status and output of a command."""

    code: int
    out: str
    err: str


def run(file: Path, *arguments: str) -> Printed:
    """Runs a command on a configuration."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    code = 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main([*arguments, "-c", str(file)])
        except SystemExit as ended:
            code = int(ended.code or 0)
    return Printed(code, *(stream.buffer.getvalue().decode() for stream in (out, err)))


def printed(file: Path, *arguments: str) -> str:
    """Runs a command that succeeds; what it prints."""
    done = run(file, *arguments)
    assert done.code == 0, done.err
    return done.out
