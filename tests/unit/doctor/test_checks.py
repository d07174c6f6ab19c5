"""Checks run at the same time, with one end for all."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from threading import Barrier, Event

from engine.doctor.checks import Check, Finding, Severity, ok, run
from engine.errors import HardFailureError, UnreachableError


def soon() -> float:
    return time.monotonic() + 30


def quiet(_: Sequence[str]) -> None:
    pass


def test_checks_run_at_the_same_time_and_are_told_in_their_own_order() -> None:
    together, second = Barrier(2, timeout=20), Event()

    def first_to_be_told() -> Iterator[Finding]:
        together.wait()
        assert second.wait(20)
        yield ok("a", "1")

    def first_to_be_done() -> Iterator[Finding]:
        together.wait()
        second.set()
        yield ok("b", "2")

    found = run([Check("a", first_to_be_told), Check("b", first_to_be_done)], soon(), quiet)
    assert found == [ok("a", "1"), ok("b", "2")]


def test_who_does_not_answer_in_time_has_failed_but_what_it_has_found_before_counts() -> None:
    never = Event()

    def hangs() -> Iterator[Finding]:
        yield ok("kafka", "answers")
        never.wait(60)

    began = time.monotonic()
    checks = [Check("kafka", hangs, "start it", UnreachableError), Check("other", lambda: [ok("other", "fine")])]
    answers, late, other = run(checks, time.monotonic() + 0.3, quiet)
    never.set()
    assert time.monotonic() - began < 10
    assert (answers, other) == (ok("kafka", "answers"), ok("other", "fine"))
    assert late.found.startswith("no answer within 0.")
    assert (late.state, late.remedy, late.exit_code) == (Severity.FAILED, "start it", 6)


def test_errors_are_findings_and_never_hold_up_the_others() -> None:
    def refuses() -> Iterator[Finding]:
        raise HardFailureError("the broker refuses; ask its owner")

    def breaks() -> Iterator[Finding]:
        raise LookupError("oh")

    refused, broken = run([Check("r", refuses), Check("b", breaks, "tell us")], soon(), quiet)
    assert refused == Finding("r", Severity.FAILED, "the broker refuses", "ask its owner", 4)
    assert broken == Finding("b", Severity.FAILED, "internal error: LookupError: oh", "tell us", 1)


def test_it_tells_what_is_still_looked_at() -> None:
    told: list[tuple[str, ...]] = []
    go = Event()

    def waits() -> Iterator[Finding]:
        assert go.wait(20)
        yield ok("slow", "")

    def waiting(names: Sequence[str]) -> None:
        told.append(tuple(names))
        if tuple(names) == ("slow",):
            go.set()

    run([Check("quick", lambda: [ok("quick", "")]), Check("slow", waits)], soon(), waiting)
    assert told == [("quick", "slow"), ("slow",)]
