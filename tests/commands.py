"""Commands of `jms-bridge`, called as their processes would call them."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from engine.cli import main

__all__ = ["CommandResult", "exit_code", "finished"]


class CommandResult(NamedTuple):
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


def exit_code(*arguments: object) -> int:
    """Runs a command, and returns its exit code."""
    with pytest.raises(SystemExit) as ended:
        main([*map(str, arguments)])
    return int(ended.value.code or 0)


def finished(capsys: pytest.CaptureFixture[str], *arguments: object) -> CommandResult:
    """Runs a command, and returns its exit code and what it printed."""
    code = exit_code(*arguments)
    return CommandResult(code, *capsys.readouterr())
