"""What the watch of a source's depth reports of numbers, reasons and failures, and how often it asks."""

from __future__ import annotations

from threading import Event
from typing import TYPE_CHECKING

import structlog
from prometheus_client import CollectorRegistry

from engine.connectors.base import NotConnectedError
from engine.connectors.depth import NotSaidError, UnsaidDepth
from engine.delivery.depth_watch import DepthWatch
from engine.telemetry.meters import SourceMetrics
from engine.telemetry.status import State
from tests.waiting import until

if TYPE_CHECKING:
    from engine.connectors.depth import Depth

SLOW_SECONDS = 0.05


class Answers:
    """A depth that gives these answers, and then the last one again and again."""

    def __init__(self, *answers: int | Exception) -> None:
        self.answers = list(answers)
        self.asked = self.closed = 0

    def ask(self) -> int:
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        self.closed += 1


class States:
    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    def state(self, state: State | str, detail: str = "") -> None:
        self.seen.append((str(state), detail))


class Watched:
    """A watch of some answers, with what it reports."""

    def __init__(self, depth: Depth, interval: float = 0.01) -> None:
        self.registry, self.states = CollectorRegistry(), States()
        metrics = SourceMetrics(self.registry, "s", "source:s")
        self.watch = DepthWatch(lambda: depth, "s", metrics, self.states, interval)

    @property
    def waiting(self) -> float | None:
        return self.registry.get_sample_value("jmsbridge_source_waiting_messages", {"source": "s"})


def test_a_number_is_a_metric_and_the_state_stays_as_it_is() -> None:
    depth = Answers(3, 5)
    told = Watched(depth)
    assert told.waiting is None
    with told.watch:
        told.watch.state(State.READY, "at home")
        until(lambda: told.waiting == 5)
    assert told.states.seen == [("ready", "at home")]
    assert depth.closed == 1


def test_a_reason_takes_the_place_of_a_number_and_is_said_once() -> None:
    depth = Answers(3, NotSaidError("no right"), NotSaidError("no right"), NotConnectedError("gone"), 4)
    told = Watched(depth)
    told.watch.state(State.READY, "at home")
    with structlog.testing.capture_logs() as logs, told.watch:
        until(lambda: told.waiting == 4)
    suffix = "; waiting messages not known: "
    details = ["at home", f"at home{suffix}no right", f"at home{suffix}gone", "at home"]
    assert told.states.seen == [("ready", detail) for detail in details]
    assert [entry["event"] for entry in logs] == [
        *["the number of waiting messages is not known"] * 2,
        "the number of waiting messages is known again",
    ]
    # Each question begins with a connection of its own after a failure.
    assert depth.closed == 4


def test_other_states_are_told_without_the_reason() -> None:
    told = Watched(Answers(NotSaidError("no right")))
    with told.watch:
        told.watch.state(State.READY, "at home")
        until(lambda: told.states.seen and "not known" in told.states.seen[-1][1])
        told.watch.state(State.DEGRADED, "no Kafka")
    assert told.states.seen[-1] == ("degraded", "no Kafka")


def test_a_system_that_never_says_it_is_asked_once() -> None:
    told = Watched(UnsaidDepth("it has no question"))
    with told.watch:
        told.watch.state(State.READY, "at home")
        until(lambda: not told.watch._thread.is_alive())
    assert told.states.seen[-1] == ("ready", "at home; waiting messages not known: it has no question")


def test_a_fault_in_a_question_does_no_harm_and_is_not_repeated() -> None:
    depth = Answers(ZeroDivisionError("oh"))
    told = Watched(depth)
    with structlog.testing.capture_logs() as logs, told.watch:
        told.watch.state(State.READY, "at home")
        until(lambda: told.states.seen and "not known" in told.states.seen[-1][1])
    assert told.states.seen[-1][1].endswith("not known: ZeroDivisionError: oh")
    assert [entry["log_level"] for entry in logs].count("error") == 1


def test_a_refusal_is_met_with_fewer_questions() -> None:
    refused, allowed = Answers(NotSaidError("no right")), Answers(1)
    with Watched(refused).watch, Watched(allowed).watch:
        until(lambda: allowed.asked >= 50)
    assert refused.asked <= 10


class SlowAnswers(Answers):
    def ask(self) -> int:
        Event().wait(SLOW_SECONDS)
        return super().ask()


def test_slow_answers_take_a_small_share_of_the_time() -> None:
    depth = SlowAnswers(1)
    with Watched(depth).watch:
        Event().wait(SLOW_SECONDS * 12)
    assert depth.asked == 1


def test_a_system_that_did_not_answer_in_time_is_asked_again_soon() -> None:
    depth = SlowAnswers(NotConnectedError("no answer"), 4)
    with Watched(depth).watch:
        until(lambda: depth.asked == 2, SLOW_SECONDS * 12)
