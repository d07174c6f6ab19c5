"""Checks of doctor and their findings; runs checks at the same time, each in its own thread, until one deadline."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from queue import Empty, Queue
from threading import Thread

from engine.errors import SetupError
from routes.errors import BridgeError

__all__ = [
    "Check",
    "Finding",
    "Severity",
    "Waiting",
    "exit_code",
    "failed",
    "listens",
    "of_error",
    "ok",
    "run",
    "warning",
]


class Severity(StrEnum):
    """Severity: with a failure the bridge would not start or not work; with a warning it works for now."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check: a line for the finding, and another one for the remedy."""

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
    """Makes a finding that needs a remedy; `error` is the kind of error that `jms-bridge run` would end with."""
    return Finding(name, Severity.FAILED, found, remedy, error.exit_code)


def of_error(name: str, error: BridgeError, remedy: str) -> Finding:
    """Makes a finding from an error.

    The remedy is the text behind the last semicolon of the error; `remedy` is for an error without one.
    """
    text = " ".join(str(error).split())
    found, separator, own = text.rpartition("; ")
    return failed(name, found, own, type(error)) if separator else failed(name, text, remedy, type(error))


def exit_code(findings: Iterable[Finding]) -> int:
    """Returns the exit code of the first failure; 0 if there is none."""
    return next((each.exit_code or 0 for each in findings if each.state is Severity.FAILED), 0)


Waiting = Callable[[Sequence[str]], None]
"""Callback that gets the names of the checks that are not done yet, whenever they change."""


@dataclass(frozen=True, slots=True)
class Check:
    """A check, by name. It changes nothing, wherever it looks."""

    name: str
    look: Callable[[], Iterable[Finding]]
    remedy: str = "look at its disk: does `df` hang as well?"
    """Remedy for a check that does not answer in time, or an error that names none."""
    late: type[BridgeError] = SetupError
    """Kind of error that a check without an answer counts as."""


def run(checks: Sequence[Check], deadline: float, waiting: Waiting) -> list[Finding]:
    """Returns the findings of all checks, in their order. A check that is not done at the `deadline` has failed.

    `deadline` is a `time.monotonic` time. Threads that are late keep running, and their findings are dropped.
    """
    began, answers = time.monotonic(), Queue[int]()
    found: list[list[Finding]] = [[] for _ in checks]
    for number, check in enumerate(checks):
        arguments = number, check, found[number], answers
        Thread(target=_answer, args=arguments, name=check.name, daemon=True).start()
    late = set(range(len(checks)))
    while late:
        waiting([check.name for number, check in enumerate(checks) if number in late])
        try:
            late.remove(answers.get(timeout=max(deadline - time.monotonic(), 0)))
        except Empty:
            break
    seconds = time.monotonic() - began
    for number in late:
        # The thread may still find something, which is too late to count.
        found[number] = [*found[number], _late(checks[number], seconds)]
    return [finding for findings in found for finding in findings]


def listens(host: str, port: int, seconds: float) -> bool:
    """Returns True if a server takes connections at an address within a time."""
    try:
        with socket.create_connection((host, port), seconds):
            return True
    except OSError:
        return False


def _answer(number: int, check: Check, found: list[Finding], answers: Queue[int]) -> None:
    try:
        for finding in check.look():
            found.append(finding)  # noqa: PERF402 - findings before a late one count
    except BridgeError as error:
        found.append(of_error(check.name, error, check.remedy))
    except Exception as error:
        what = f"internal error: {type(error).__name__}: {error}"
        found.append(failed(check.name, what, check.remedy, BridgeError))
    answers.put(number)


def _late(check: Check, seconds: float) -> Finding:
    return failed(check.name, f"no answer within {seconds:.1f} s", check.remedy, check.late)
