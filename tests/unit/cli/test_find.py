"""`jms-bridge find`, with a search that answers as it is told."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event

import pytest

from engine.errors import UnreachableError
from engine.find import search
from engine.find.question import FindQuestion, TopicKind
from engine.find.search import FindProgress, FoundRecord
from engine.kafka.reader import LocatedRecord, Position
from engine.record import Record
from routes.model import Config
from tests.commands import finished

HEADERS = (
    ("jms.JMSMessageID", b"ID:1\x1b[2J"),
    ("jms.Destination", b"queue:orders"),
    ("jmsbridge.route", b"orders"),
    ("jmsbridge.reason", b"key-not-found"),
)
FOUND = FoundRecord(
    TopicKind.DEAD_LETTERS,
    LocatedRecord(Position("dead", 0, 17), 1_795_824_000_000, Record(b"key", b"body", HEADERS)),
)
HALF = FindProgress(50, 100, 1, "token", False, records=50)
WHOLE = FindProgress(100, 100, 1, None, True, records=100, notes=("topic 'orders' does not exist",))

Answer = Iterator[FoundRecord | FindProgress]
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    file = tmp_path / "b.properties"
    file.write_text("bridge.id=b\nroutes.a.in.include=TRUE\nroutes.a.out.topic=orders\n")

    def run(answer: Callable[[FindQuestion, Event], Answer], *arguments: str) -> tuple[int, str, str]:
        def find(_: Config, question: FindQuestion, stop: Event) -> Answer:
            return answer(question, stop)

        monkeypatch.setattr(search, "find", find)
        return finished(capsys, "find", "-c", str(file), *arguments)

    return run


def test_a_record_takes_two_lines_without_control_characters(call: Call) -> None:
    code, out, err = call(lambda *_: iter([FOUND, WHOLE]))
    assert code == 0
    assert out == (
        "2026-11-28T00:00:00.000Z  dead-letters  dead:0:17\n"
        "    ID:1\\x1b[2J  queue:orders  route orders  key-not-found\n"
    )
    assert err == "topic 'orders' does not exist\n100 of 100 records; 1 found\n"


def test_programs_get_the_record_and_at_last_what_was_read(call: Call) -> None:
    code, out, err = call(lambda *_: iter([FOUND, HALF]), "--json")
    record, last = map(json.loads, out.splitlines())
    assert code == 0
    assert record["kind"] == "dead-letters"
    assert record["offset"] == 17
    assert len(record["headers"]) == 4
    assert last["read"] == 50
    assert last["resume"] == "token"
    assert last["done"] is False
    assert not err


def test_ctrl_c_ends_the_search_and_says_how_to_go_on(call: Call) -> None:
    def answer(_: FindQuestion, stop: Event) -> Answer:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.wait(10)
        yield HALF

    code, _, err = call(answer, "--where", "a = 'it''s'", "--since", "2026-11-27", "--in", "sinks,journal")
    assert code == 130
    assert "50 of 100 records from 2026-11-27T00:00:00.000Z; 1 found\n" in err
    options = (
        "--where 'a = '\"'\"'it'\"'\"''\"'\"'s'\"'\"'' --since 2026-11-27T00:00:00.000Z --in journal,sink -n 20 -c"
    )
    assert f"continue with: jms-bridge find {options} " in err
    assert err.endswith(" --resume token\n")


def test_after_an_outage_the_search_can_go_on(call: Call) -> None:
    def answer(*_: object) -> Answer:
        yield HALF
        msg = "Kafka does not answer"
        raise UnreachableError(msg)

    code, _, err = call(answer)
    assert code == 6
    assert "50 of 100 records; 1 found\ncontinue with: jms-bridge find -n 20 -c " in err
    assert err.endswith("jms-bridge: Kafka does not answer\n")


def test_options_make_the_question(call: Call) -> None:
    asked: list[FindQuestion] = []

    def answer(question: FindQuestion, _: Event) -> Answer:
        asked.append(question)
        yield WHOLE

    call(
        answer,
        *("0", "--message-id", "1", "--correlation-id", "2", "--key", "3", "-H", "a=b", "-H", "a=c=d", "--text", "4"),
        *("--in", "destinations, dead-letters", "--in", "orders", "-n", "5", "--resume", "token"),
    )
    assert asked == [
        FindQuestion(
            message_id="1",
            correlation_id="2",
            key="3",
            headers=(("a", "b"), ("a", "c=d")),
            text="4",
            kinds=frozenset({TopicKind.DESTINATION, TopicKind.DEAD_LETTERS}),
            most=5,
            resume="token",
            topics=frozenset({"orders"}),
            either_id="0",
        )
    ]
