"""What doctor has to say of one thing it has looked at."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from engine.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from routes.errors import BridgeError

__all__ = ["Finding", "State", "exit_code", "failed", "of_error", "ok", "warning"]


class State(StrEnum):
    """How bad it is: with a failure the bridge would not start or not work, a warning it can live with for now."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line, and another one for the remedy."""

    name: str
    """What was looked at: a key, a part of the bridge, a program."""
    state: State
    found: str
    remedy: str = ""
    """Empty only where nothing is wrong."""
    exit_code: int | None = None
    """What `jms-bridge run` would end with; None where it would not end."""


def ok(name: str, found: str) -> Finding:
    """All is well."""
    return Finding(name, State.OK, found)


def warning(name: str, found: str, remedy: str) -> Finding:
    """Worth a look."""
    return Finding(name, State.WARNING, found, remedy)


def failed(name: str, found: str, remedy: str, error: type[BridgeError] = SetupError) -> Finding:
    """What has to be mended; `error` is the kind of error that `jms-bridge run` would end with."""
    return Finding(name, State.FAILED, found, remedy, error.exit_code)


def of_error(name: str, error: BridgeError, remedy: str) -> Finding:
    """What an error says; `remedy` is for one that does not tell its own, behind its last semicolon."""
    text = " ".join(str(error).split())
    found, told, own = text.rpartition("; ")
    return failed(name, found, own, type(error)) if told else failed(name, text, remedy, type(error))


def exit_code(findings: Iterable[Finding]) -> int:
    """That of the first failure; 0 if there is none."""
    return next((each.exit_code or 0 for each in findings if each.state is State.FAILED), 0)
