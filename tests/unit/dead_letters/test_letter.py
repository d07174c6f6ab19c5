"""What a dead letter says, and the original in it."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from engine.cli.dlt_output import letter_json, letter_table
from engine.dead_letters.letter import DeadLetter, original
from engine.dead_letters.state import LetterState
from engine.dead_letters.store import DeadLetterStore
from engine.kafka.reader import LocatedRecord, Position
from engine.message import Message
from engine.printable import LONGEST_REASON
from routes.config import loads
from tests.unit.dead_letters.letters import letter


def test_the_first_replay_adds_its_number_and_nothing_else_to_the_message() -> None:
    dead = letter()
    record = original(dead, "b1")
    assert record.headers[-1] == ("jmsbridge.replays", b"1")
    assert Message.from_record(record) == replace(Message.from_record(dead.located.record), origins=("other",))
    assert not {name for name, _ in record.headers} & {"jmsbridge.reason", "jmsbridge.time", "jmsbridge.position"}
    assert [value for name, value in record.headers if name == "jmsbridge.origin"] == [b"other"]


def test_each_further_replay_counts_on_in_the_one_header() -> None:
    record = original(letter(("jmsbridge.replays", b"2")), "b1")
    assert [value for name, value in record.headers if name == "jmsbridge.replays"] == [b"3"]


@pytest.mark.parametrize("text", [b"", b"-1", b"1.5", b"9" * 5000, "٣".encode(), b"\xff", None])
def test_a_number_of_replays_that_is_none_counts_as_0(text: bytes | None) -> None:
    assert letter(("jmsbridge.replays", text)).replays == 0


def test_the_bridges_own_headers_are_the_last_of_their_name() -> None:
    dead = letter(("jmsbridge.reason", b"unmatched"), ("jmsbridge.reason", None))
    assert dead.reason == "unmatched"


def test_what_is_shown_of_long_texts_is_cut_and_says_so() -> None:
    long = b"x" * 900_000
    names = ("reason", "route", "time", "position", "truncated")
    dead = letter(*((f"jmsbridge.{name}", long) for name in names), ("__connect.errors.exception.message", long))
    cut = "x" * LONGEST_REASON + " … (900,000 characters in all)"
    texts = (dead.reason, dead.route, dead.time, dead.journal_position, dead.truncated, dead.detail)
    assert texts == (cut,) * 6
    console = Console(file=StringIO(), width=200)
    console.print(letter_table([(dead, LetterState.OPEN, 5_000)]))
    assert len(console.file.getvalue()) < 20_000  # type: ignore[attr-defined]
    assert letter_json(dead)["reason"] == cut
    assert len(dead.origin) < 3 * LONGEST_REASON


def test_a_dead_letter_without_a_time_is_as_old_as_its_record() -> None:
    assert letter(time="").time_ms == 1_000
    assert letter().time_ms == 1_795_240_800_123


def test_a_record_that_is_no_dead_letter_says_nothing() -> None:
    empty = DeadLetter(LocatedRecord(Position("dead", 0, 0), -1, original(letter(), "b1")))
    assert (empty.reason, empty.route, empty.detail, empty.time, empty.truncated) == ("", "", "", "", "")


@pytest.mark.parametrize(
    ("target", "number"),
    [
        ("1 kafka:orders", 1),
        ("2 kafka:copies", 2),
        # The route has them in another order now, or another destination in this place.
        ("2 kafka:orders", 1),
        ("2 kafka:misspelt", 2),
        ("3 kafka:gone", None),
    ],
)
def test_a_replay_finds_the_destination_that_failed(target: str, number: int | None) -> None:
    text = "bridge.id=b1\nroutes.x.in.include=TRUE\nroutes.x.name=orders\nroutes.x.out.topic=orders, copies\n"
    store = DeadLetterStore.of(loads(text))
    dead = letter(("jmsbridge.target", target.encode()), ("jmsbridge.only", b"9 before"))
    found = store.publication(dead)
    assert (found and found.number) == number
    headers = original(dead, "b1", found).headers
    assert [value for name, value in headers if name == "jmsbridge.only"] == (
        [f"{number} orders".encode()] * bool(number)
    )
    assert "jmsbridge.target" not in dict(headers)
    assert store.publication(letter(("jmsbridge.target", target.encode()), route="other")) is None


def test_the_seal_is_of_the_letter_and_not_of_the_message() -> None:
    plain, sealed = letter(), letter(("jmsbridge.seal", b"run-1-1-digest"))
    assert (plain.has_seal, sealed.has_seal) == (False, True)
    assert original(sealed, "b1") == original(plain, "b1")
    assert sealed.origin == plain.origin
