"""The page of brokers: made of the results, with nothing that was not run."""

from __future__ import annotations

from tests.brokers.__main__ import CASE_NAMES
from tests.brokers.broker import Protocol
from tests.brokers.results import PAGE, Result, Verdict, markdown, read

CASES = ["bodies", "headers", "groups"]


def result(case: str, verdict: Verdict, *notes: str) -> Result:
    return Result("a", "A Broker", "1.0", Protocol.STOMP, "its JMS client", case, verdict, notes)


def test_the_page_is_what_the_results_make() -> None:
    assert PAGE.read_text(encoding="utf-8") == markdown(read(), CASE_NAMES)


def test_a_case_that_was_not_run_says_so() -> None:
    found = [result("bodies", Verdict.OK), result("headers", Verdict.DIFFERS, "a | b", "<c>")]

    lines = markdown(found, CASES).splitlines()

    assert "| A Broker 1.0 | STOMP | its JMS client | 1 | 1 | 0 | 1 |" in lines
    assert lines[-3:] == ["| bodies | ok |", "| headers | **differs**: a \\| b<br>&lt;c> |", "| groups | not run |"]
