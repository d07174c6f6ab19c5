"""Runs checks at the same time, each in a thread of its own, and waits for all of them until one deadline."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from queue import Empty, Queue
from threading import Thread

from engine.doctor.findings import Finding, failed, of_error
from engine.errors import SetupError
from routes.errors import BridgeError

__all__ = ["Check", "Waiting", "run"]

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
