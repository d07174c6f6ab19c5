"""Findings: exit codes, and what becomes of errors."""

from __future__ import annotations

from engine.doctor.checks import Finding, Severity, exit_code, failed, of_error, ok, warning
from engine.errors import HardFailureError, SetupError, UnreachableError


def test_the_exit_code_is_that_of_the_first_failure() -> None:
    well, odd = ok("a", "fine"), warning("b", "odd", "look")
    gone = failed("c", "gone", "start it", UnreachableError)
    closed = failed("d", "closed", "open it")
    assert exit_code([]) == 0
    assert exit_code([well, odd]) == 0
    assert exit_code([well, odd, gone, closed]) == 6
    assert exit_code([closed, gone]) == 3


def test_an_error_that_tells_its_remedy_is_split() -> None:
    error = UnreachableError("no Kafka at h:1 for 5 s (refused; twice); start it, or correct kafka.bootstrap.servers")
    assert of_error("kafka", error, "unused") == Finding(
        "kafka",
        Severity.FAILED,
        "no Kafka at h:1 for 5 s (refused; twice)",
        "start it, or correct kafka.bootstrap.servers",
        6,
    )


def test_an_error_without_a_remedy_is_given_one_and_stays_in_one_line() -> None:
    found = of_error("s", HardFailureError("it speaks\n  STOMP 1.0"), "take another broker")
    assert found == Finding("s", Severity.FAILED, "it speaks STOMP 1.0", "take another broker", 4)
    assert of_error("s", SetupError("x"), "mend").exit_code == 3
