"""Repeated log lines: which pass, what is told of the others and when, and what is never left out."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Thread

import pytest
import structlog

from engine.telemetry.log_limit import Limiter, LineKind

LOGGER = logging.getLogger("engine.test")


class House:
    """A limiter of three lines in ten seconds, whose time is up to the test."""

    def __init__(self) -> None:
        self.now = 0.0
        self.told: list[tuple[str, int]] = []
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.limiter = Limiter(3, 10.0, clock=lambda: self.now, later=self._later, tell=self._tell)

    def _later(self, seconds: float, call: Callable[[], None]) -> None:
        self.timers.append((self.now + seconds, call))

    def _tell(self, kind: LineKind, lines: int) -> None:
        self.told.append((kind.event, lines))

    def log(self, event: str = "e", level: str = "warning", component: str = "c", times: int = 1) -> int:
        """How many of so many lines pass."""
        passed = 0
        for number in range(times):
            try:
                self.limiter.processor(LOGGER, level, {"event": event, "component": component, "n": number})
            except structlog.DropEvent:
                continue
            passed += 1
        return passed

    def wait_until(self, now: float) -> None:
        self.now = now
        due, self.timers = [t for t in self.timers if t[0] <= now], [t for t in self.timers if t[0] > now]
        for _, call in due:
            call()


@pytest.fixture
def house() -> House:
    return House()


def test_a_few_lines_of_a_kind_pass_and_the_others_are_counted(house: House) -> None:
    assert house.log(times=3) == 3
    assert house.timers == []
    assert house.log(times=4) == 0
    assert house.told == []
    house.wait_until(10)
    assert house.told == [("e", 4)]


def test_event_level_component_and_logger_make_a_kind(house: House) -> None:
    house.log(times=3)
    assert house.log() == 0
    assert [house.log("f"), house.log(level="info"), house.log(component="d")] == [1, 1, 1]
    house.limiter.processor(logging.getLogger("engine.other"), "warning", {"event": "e", "component": "c"})


def test_after_its_time_a_kind_begins_anew_and_says_first_what_was_left_out(house: House) -> None:
    house.log(times=5)
    house.now = 10.0
    assert house.log(times=4) == 3
    assert house.told == [("e", 2)]
    house.wait_until(20)
    assert house.told == [("e", 2), ("e", 1)]


def test_what_goes_on_and_on_is_told_once_in_each_window(house: House) -> None:
    for second in range(30):
        house.wait_until(float(second))
        house.log(times=10)
    assert house.told == [("e", 97), ("e", 97)]


def test_nothing_is_told_of_what_was_not_left_out(house: House) -> None:
    house.log(times=3)
    house.log("f", times=4)
    house.wait_until(100)
    assert house.told == [("f", 1)]
    assert house.timers == []


def test_one_timer_serves_all_kinds(house: House) -> None:
    house.log("a", times=4)
    house.now = 4.0
    house.log("b", times=5)
    assert [at for at, _ in house.timers] == [10.0]
    house.wait_until(10)
    assert house.told == [("a", 1), ("b", 2)]
    assert house.timers == []
    house.log("b", times=4)
    assert [at for at, _ in house.timers] == [20.0]


@pytest.mark.parametrize("level", ["error", "critical", "exception", "debug"])
def test_errors_are_never_left_out_nor_is_what_somebody_asked_for(house: House, level: str) -> None:
    assert house.log(level=level, times=100) == 100


def test_flush_tells_at_once(house: House) -> None:
    house.log("a", times=5)
    house.log("b", times=1)
    house.limiter.flush()
    house.limiter.flush()
    house.wait_until(10)
    assert house.told == [("a", 2)]


def test_memory_is_bounded_and_what_is_forgotten_is_reported(house: House) -> None:
    house.log("first", times=5)
    for number in range(1000):
        house.log(f"e{number}")
    assert house.told == [("first", 2)]
    assert len(house.limiter._lines) <= 1000


def test_lines_of_libraries_are_counted_by_their_pattern(house: House) -> None:
    def passes(level: int, number: object) -> bool:
        return house.limiter.filter(logging.LogRecord("library", level, "x.py", 1, "no answer %s", (number,), None))

    assert [passes(logging.WARNING, number) for number in range(5)] == [True, True, True, False, False]
    assert all(passes(logging.ERROR, number) for number in range(5))
    house.wait_until(10)
    assert house.told == [("no answer %s", 2)]


def test_many_threads_leave_out_exactly_what_is_too_much(house: House) -> None:
    passed: list[int] = []
    threads = [Thread(target=lambda: passed.append(house.log(times=500))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    house.wait_until(10)
    assert sum(passed) == 3
    assert house.told == [("e", 3997)]
