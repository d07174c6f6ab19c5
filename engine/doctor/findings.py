"""Findings of doctor: the result of one check, and its exit code."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from engine.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from routes.errors import BridgeError

__all__ = ["Finding", "Severity", "exit_code", "failed", "of_error", "ok", "warning"]


class Severity(StrEnum):
    """Severity: with a failure the bridge would not start or not work; with a warning it works for now."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check: a line that says what was found, and another one for the remedy."""

    name: str
    """Subject of the check: a key, a part of the bridge, a program."""
    state: Severity
    found: str
    remedy: str = ""
    """Empty only if nothing is wrong."""
    exit_code: int | None = None
    """Exit code with which `jms-bridge run` would end; None if it would not end."""


def ok(name: str, found: str) -> Finding:
    """Makes a finding that nothing is wrong."""
    return Finding(name, Severity.OK, found)


def warning(name: str, found: str, remedy: str) -> Finding:
    """Makes a finding that is worth a look."""
    return Finding(name, Severity.WARNING, found, remedy)


def failed(name: str, found: str, remedy: str, error: type[BridgeError] = SetupError) -> Finding:
    """Makes a finding that has to be mended; `error` is the kind of error that `jms-bridge run` would end with."""
    return Finding(name, Severity.FAILED, found, remedy, error.exit_code)


def of_error(name: str, error: BridgeError, remedy: str) -> Finding:
    """Makes a finding from an error.

    The remedy is the text behind the last semicolon of the error; `remedy` is for an error without one.
    """
    text = " ".join(str(error).split())
    found, told, own = text.rpartition("; ")
    return failed(name, found, own, type(error)) if told else failed(name, text, remedy, type(error))


def exit_code(findings: Iterable[Finding]) -> int:
    """Returns the exit code of the first failure; 0 if there is none."""
    return next((each.exit_code or 0 for each in findings if each.state is Severity.FAILED), 0)
