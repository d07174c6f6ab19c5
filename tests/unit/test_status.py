"""Reporter and board, over a real pipe."""

import os
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from prometheus_client import CollectorRegistry

from engine.errors import HardFailureError
from engine.printable import LONGEST_LINE
from engine.telemetry.meters import SourceMetrics
from engine.telemetry.status import Reporter, State, Status, StatusBoard, component_name

SECONDS = 10


@dataclass
class Pipe:
    board: StatusBoard
    reporter: Reporter

    def wait(self, state: State) -> Status:
        assert self.board.wait(lambda: self.board.get("router").state is state, SECONDS)
        return self.board.get("router")

    def last_word(self) -> Status:
        assert self.board.wait(lambda: self.board.get("router").error is not None, SECONDS)
        return self.board.get("router")


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    reading, writing = os.pipe()
    board = StatusBoard(["router"])
    thread = board.read("router", reading)
    with Reporter(writing, "router", CollectorRegistry()) as reporter:
        yield Pipe(board, reporter)
    thread.join(SECONDS)
    assert not thread.is_alive()


def test_a_component_is_down_until_it_speaks() -> None:
    assert StatusBoard(["router"]).all() == (Status("router", State.DOWN),)


def test_a_change_of_state_arrives_at_once_with_its_detail(pipe: Pipe) -> None:
    pipe.wait(State.STARTING)
    pipe.reporter.state("degraded", "Kafka at 127.0.0.1:9092 does not answer")
    assert pipe.wait(State.DEGRADED).detail == "Kafka at 127.0.0.1:9092 does not answer"


def test_figures_arrive_without_a_change_of_state(pipe: Pipe) -> None:
    metrics = SourceMetrics(pipe.reporter.registry, "orders", "source:orders")
    metrics.journaled(3)
    line = 'jmsbridge_source_journaled_messages_total{source="orders"} 3.0'
    assert pipe.board.wait(lambda: line in pipe.board.get("router").metrics, SECONDS)


def test_a_question_gets_its_answer_between_states(pipe: Pipe) -> None:
    first, second, third = (pipe.board.question() for _ in range(3))
    pipe.reporter.answer(second, "two\nlines")
    pipe.reporter.answer(first, "one")
    assert pipe.board.answer(first, SECONDS) == "one"
    assert pipe.board.answer(second, SECONDS) == "two\nlines"
    assert pipe.board.answer(third, 0.01) is None
    pipe.reporter.answer(third, "late")
    pipe.reporter.state(State.READY)
    assert pipe.wait(State.READY)


def test_a_bridge_error_is_the_last_word_with_its_text_and_exit_code(pipe: Pipe) -> None:
    pipe.reporter.state(State.READY)
    pipe.reporter.error(HardFailureError("topic 'a' does not exist"))
    pipe.reporter.state(State.STOPPING)
    pipe.reporter.close()
    status = pipe.last_word()
    assert (status.error, status.exit_code) == ("topic 'a' does not exist", 4)
    assert status.detail == status.error


def test_an_unforeseen_error_has_no_exit_code(pipe: Pipe) -> None:
    pipe.reporter.error(ZeroDivisionError("division by zero"))
    pipe.reporter.close()
    status = pipe.last_word()
    assert (status.error, status.exit_code) == ("ZeroDivisionError: division by zero", None)


def test_what_a_dead_component_counted_and_why_it_ended_stay_known() -> None:
    board = StatusBoard(["router"])
    board.put(Status("router", State.READY, "2 routes", "a_total 1\n", "no luck"))
    board.down("router", "killed by signal 9")
    assert board.get("router") == Status("router", State.DOWN, "killed by signal 9", "a_total 1\n", "no luck")


def test_secrets_do_not_get_onto_the_board() -> None:
    board = StatusBoard(["router"], clean=lambda text: text.replace("hunter2", "******"))
    board.put(Status("router", State.DOWN, "login with hunter2", error="hunter2 refused"))
    assert board.get("router") == Status("router", State.DOWN, "login with ******", error="****** refused")


def test_a_long_text_on_the_board_is_cut_behind_the_masks() -> None:
    board = StatusBoard(["router"], lambda text: text.replace("secret", "***"))
    text = "x" * (LONGEST_LINE - 5) + "secret" * 100_000
    board.put(Status("router", State.DOWN, detail=text, error=text))
    found = board.get("router")
    for shown in (found.detail, found.error or ""):
        assert "sec" not in shown
        assert len(shown) < LONGEST_LINE + 100


def test_half_a_line_of_a_killed_process_is_left_out() -> None:
    reading, writing = os.pipe()
    board = StatusBoard(["router"])
    thread = board.read("router", reading)
    os.write(writing, b'{"component": "router", "state": "ready"}\n{"component": "rou')
    os.close(writing)
    thread.join(SECONDS)
    assert board.get("router").state is State.READY


def test_a_reporter_outlives_its_reader() -> None:
    reading, writing = os.pipe()
    with Reporter(writing, "router", CollectorRegistry()) as reporter:
        os.close(reading)
        reporter.state(State.READY)


def test_a_reporter_without_a_pipe_only_logs() -> None:
    with Reporter(None, "router", CollectorRegistry()) as reporter:
        reporter.state(State.READY, "2 routes")
        assert reporter.current == Status("router", State.READY, "2 routes")


def test_the_first_worker_of_a_source_is_called_like_the_source() -> None:
    names = [component_name("orders", worker) for worker in (1, 2, 3)]
    assert names == ["source:orders", "source:orders/2", "source:orders/3"]
